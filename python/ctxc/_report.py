"""The results of check, verify and inspect: views of the same JSON that the command line writes."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, Optional, Union


class Report:
    """`json` has all results, under the names that the command line uses.

    >>> "groups" in ctxc.check(model).json
    True
    """

    def __init__(self, json: dict[str, Any]):
        self.json = json


class CheckReport(Report):
    """Verdicts on the layers of a model. print(report) shows them, as does a notebook; before a verdict against, what prevents a
    patch, at which line, and the way out.

    >>> str(ctxc.check(model)).splitlines()[0]
    "layers 0-5, block 'gemma3': controllable"
    """

    def __init__(self, json: dict[str, Any], text: str, sarif: dict[str, Any]):
        super().__init__(json)
        self._text, self._sarif = text, sarif

    @property
    def patchable(self) -> bool:
        """Whether every layer has an exact patch, and the context reaches the logits only through the layers.

        >>> ctxc.check("test/python/Inputs/refused.mlir").patchable
        False
        """
        return bool(self.json["patchable"])

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """One verdict for each kind of layer.

        >>> [each["verdict"] for each in ctxc.check(model).verdicts]
        ['controllable']
        """
        return list(self.json["groups"])

    @property
    def plans(self) -> list[dict[str, Any]]:
        """The parameters that are patched in each kind of layer that has a plan: its verdict's "input" and "output".

        >>> [each["parameter"] for each in ctxc.check(model).plans[0]["output"]]
        ['mlp.down_proj.weight', 'post_feedforward_layernorm.weight']
        """
        return [{"input": each["input"], "output": each["output"]} for each in self.verdicts
                if each.get("input") or each.get("output")]

    @property
    def sarif(self) -> dict[str, Any]:
        """The findings as a SARIF 2.1.0 log, as `ctxc check --format sarif` writes it.

        >>> ctxc.check("test/python/Inputs/refused.mlir").sarif["runs"][0]["results"][0]["ruleId"]
        'bounded-output'
        """
        return self._sarif

    def __getitem__(self, layer: Union[int, str]) -> dict[str, Any]:
        """The verdict on a layer: report[0] or report["layers.0"]. Raises KeyError for a layer that the model lacks.

        >>> ctxc.check(model)["layers.5"]["verdict"]
        'controllable'
        """
        number = int(str(layer).rpartition(".")[2])
        for each in self.verdicts:
            if number in each["layers"]:
                return each
        raise KeyError(f"no layer {layer!r}")

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


class Verification(Report):
    """The patched run beside the full run, token by token.

    >>> ctxc.verify(model, "And David said", generate=2)
    verified: 2 of 2 tokens, L∞ ..., without the patch ...
    """

    @property
    def verified(self) -> bool:
        """Whether every token is the full run's, and all logits agree within the allowed rounding.

        >>> ctxc.verify(model, "And David said").verified
        True
        """
        return bool(self.json["verified"])

    def __bool__(self) -> bool:
        return self.verified

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each token: the token, L∞ of the patched run and of the control without the patch, …

        >>> row = ctxc.verify(model, "And David said").rows[0]
        >>> row["patched"]["linf"] < row["control"]["linf"] / 100
        True
        """
        return list(self.json["steps"])

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of all rows.

        >>> ctxc.verify(model, "And David said").summary["matches"]
        1
        """
        return dict(self.json["summary"])

    @property
    def pooled(self) -> Optional[dict[str, Any]]:
        """The vector of the whole text, where the model has no head and its directory says how texts are pooled: `full`
        is the full run's; `patched` and `control` say how near the two other runs come. Else None.

        >>> ctxc.verify(model, "And David said").pooled is None
        True
        """
        return self.json.get("pooled")

    def to_pandas(self) -> Any:
        """The rows as a pandas table; nested values have names such as "patched.linf". It needs pandas.

        >>> ctxc.verify(model, "And David said").to_pandas()["patched.linf"][0] < 1  # doctest: +SKIP
        True
        """
        import pandas

        return pandas.json_normalize(self.rows)

    def __repr__(self) -> str:
        summary = self.summary
        word = "verified" if self.verified else "not verified"
        if not self.json["model"]["head"]:
            return (f"{word}: the last hidden state, L∞ {summary['linf']:.3g}, "
                    f"without the patch {summary['controlLinf']:.3g}")
        return (f"{word}: {summary['matches']} of {summary['steps']} tokens, L∞ {summary['linf']:.3g}, "
                f"without the patch {summary['controlLinf']:.3g}")

    def _repr_html_(self) -> str:
        def cells(values: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values) + "</tr>"

        lines = [cells(["token", "next", "L∞ patched", "L∞ without"], "th")]
        for row in self.rows:
            lines.append(cells([str(row["token"]), str(row.get("next", "–")), f"{row['patched']['linf']:.3g}",
                                f"{row['control']['linf']:.3g}"], "td"))
        return f"<p>{escape(repr(self))}</p><table>{''.join(lines)}</table>"


class Inspection(Report):
    """What a context did to a token's weights. A notebook shows it as a page.

    >>> ctxc.inspect(model, "And David said").json["model"]["path"]
    'examples/models/gemma3-kjv-1m'
    """

    def __init__(self, json: dict[str, Any], page: str):
        super().__init__(json)
        self._page = page

    @property
    def html(self) -> str:
        """The page: one HTML file, which loads no other files.

        >>> "</html>" in ctxc.inspect(model, "And David said").html
        True
        """
        return self._page

    def save(self, path: Union[str, Path]) -> None:
        """Writes the page.

        >>> ctxc.inspect(model, "And David said").save(folder + "/page.html")
        """
        Path(path).write_text(self._page, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self._page)}" width="100%" height="900" style="border:0"></iframe>'
