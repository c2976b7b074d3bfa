for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => {
        const cell = row.cells[column];
        return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
      };
      const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
        : String(a).localeCompare(String(b), undefined, {numeric: true});
      const rows = [...body.rows].sort((a, b) => compare(key(a), key(b)));
      body.append(...(up ? rows : rows.reverse()));
    });
  });
}
