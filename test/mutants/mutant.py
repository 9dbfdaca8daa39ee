"""A mutant, and the files of which several subjects have some."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    search: str
    replace: str
    breaks: str  # the condition, as it should hold
    equivalent: str = ""  # why no test can notice: another condition implies this one


CONTROL = "dialects/XF/XFControl.cpp"
FACTS = "dialects/XF/XFFacts.cpp"
OBLIGATIONS = "dialects/XF/Obligations.cpp"
