// Numbers on hover and on focus. The pictures are complete without this script: their titles are
// then the browser's own.
"use strict";
(() => {
  const tip = document.getElementById("tip");
  let current = null;

  const place = () => {
    const at = current.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const below = at.bottom + 8 + size.height < innerHeight;
    tip.style.left = Math.max(4, Math.min(at.left, innerWidth - size.width - 4)) + "px";
    tip.style.top = Math.max(4, below ? at.bottom + 8 : at.top - size.height - 8) + "px";
  };
  const show = (item) => {
    current = item;
    tip.textContent = item.dataset.says;
    place();
    tip.classList.add("shown");
  };
  const hide = () => { current = null; tip.classList.remove("shown"); };

  // A picture is one stop of the tab key; within it the arrow keys move.
  const step = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
  for (const group of document.querySelectorAll("[data-columns]")) {
    const items = [...group.querySelectorAll(".i")];
    const columns = Number(group.dataset.columns);
    items.forEach((item, index) => {
      const title = item.querySelector(":scope > title");
      item.dataset.says = title ? title.textContent : item.title;
      if (title) title.remove(); else item.removeAttribute("title");
      item.setAttribute("role", "img");
      item.setAttribute("aria-label", item.dataset.says);
      item.setAttribute("tabindex", index === 0 ? "0" : "-1");
      item.addEventListener("pointerenter", () => show(item));
      item.addEventListener("pointerleave", hide);
      item.addEventListener("focus", () => show(item));
      item.addEventListener("blur", hide);
    });
    group.addEventListener("keydown", (event) => {
      const move = step[event.key], from = items.indexOf(document.activeElement);
      let to = -1;
      if (event.key === "Home") to = 0;
      else if (event.key === "End") to = items.length - 1;
      else if (move && columns) {
        const column = from % columns + move[1];
        if (column >= 0 && column < columns) to = from + move[0] * columns + move[1];
      } else if (move) to = from + move[0] + move[1];
      if (from < 0 || to < 0 || to >= items.length || to === from) return;
      event.preventDefault();
      items[from].setAttribute("tabindex", "-1");
      items[to].setAttribute("tabindex", "0");
      items[to].focus();
    });
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Where a picture is wider than the screen, the page's token is in sight.
  const reveal = () => {
    for (const frame of document.querySelectorAll(".scroll svg .column")) {
      const box = frame.closest(".scroll");
      const [inner, outer] = [frame, box].map((element) => element.getBoundingClientRect());
      if (inner.left < outer.left || inner.right > outer.right)
        box.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
    }
  };
  reveal();
  addEventListener("resize", reveal);
  addEventListener("change", reveal);
  // Focus may scroll what it moves to into view.
  addEventListener("scroll", () => { if (current) place(); }, {passive: true, capture: true});
})();
