"""How the measurements print: plain aligned tables, and the one percentile they all use."""

from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the others do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(title: str, rows: Sequence[Sequence[str]]) -> None:
    """Prints rows under a title; the first row names the columns, the first column what was measured."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    print(f"\n{title}")
    for row in rows:
        first, *rest = (
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *rest]).rstrip(), flush=True)
