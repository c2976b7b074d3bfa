"""How a text file is written: its encoding, what stands between cells, its decimals, its header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from outweigh.files.table import DataError, Wanted, is_number, listed

HEAD = 2**20
"""Bytes from the beginning of a file that tell how it is written."""

# A comma comes last: in a file with decimal commas it splits every row, often into as many cells.
_SEPARATORS = {"\t": "a tab", ";": "a semicolon", "|": "a bar", ",": "a comma", " ": "a space"}

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_NOTHING = frozenset({"", "na", "n/a", "null", "none", "-", "--", "?", "."})


class Dialect(NamedTuple):
    """How a text file is written.

    Attributes
    ----------
    separator, decimal : str
    units : int or None
        The line that holds units in place of numbers, counted from 0.
    recognised : list of str
        What was recognised and not told, a sentence each.
    """

    separator: str
    decimal: str
    units: int | None
    recognised: list[str]


def encoding_of(blocks: Iterable[bytes], given: str | None) -> str:
    """Return the encoding of a text: as given, by its first bytes, else UTF-8 where it is that.

    Parameters
    ----------
    blocks : iterable of bytes
        The text, or its beginning, in pieces.
    given : str or None
    """
    if given is not None:
        return given
    decoder = codecs.getincrementaldecoder("utf-8")()
    for place, block in enumerate(blocks):
        if place == 0:
            for mark, encoding in _MARKS.items():
                if block.startswith(mark):
                    return encoding
            # Of text in UTF-16 without a mark every second byte is zero, in most languages.
            for start, encoding in (1, "utf-16-le"), (0, "utf-16-be"):
                every_second = block[start:1000:2]
                if every_second.count(0) > 0.5 * len(every_second):
                    return encoding
        try:
            decoder.decode(block)
        except UnicodeDecodeError:
            # In which every byte is a letter: it never fails.
            return "latin-1"
    return "utf-8-sig"


def recognise(head: bytes, encoding: str, source: str, wanted: Wanted) -> Dialect:
    r"""Return how a text file is written, from its beginning.

    Parameters
    ----------
    head : bytes
    encoding : str
        As `encoding_of` finds it.
    source : str
        Its name.
    wanted : Wanted
        Its delimiter and decimal are known, where they are not None.

    Examples
    --------
    >>> head = b"mass;length\ng;cm\n1,5;2,5\n1,7;2,6\n"
    >>> dialect = recognise(head, "utf-8", "data.csv", Wanted())
    >>> dialect.separator, dialect.decimal, dialect.units
    (';', ',', 1)
    """
    text, recognised = codecs.getincrementaldecoder(encoding)().decode(head), []
    if "\0" in text:
        raise DataError("is not a text file: it holds bytes of value zero")
    # The last line may have been cut.
    text = text[: text.rfind("\n") + 1] or text
    usual = "\t" if source.lower().endswith((".tsv", ".tab")) else ","
    separator = wanted.delimiter or _separator(text, usual)
    lines = list(_lines(io.StringIO(text, newline=""), separator))
    decimal = wanted.decimal
    if decimal is None:
        decimal = "," if _decimal_commas([cells for _, cells in lines[1:]], separator) else "."
        if decimal == ",":
            recognised.append("numbers are read with decimal commas (--decimal . says otherwise)")
    if wanted.delimiter is None and separator != usual:
        called = _SEPARATORS[separator]
        recognised.insert(0, f"cells are separated by {called} (--delimiter says otherwise)")
    units = _units(lines, decimal)
    if units is not None:
        line, words = units
        few = listed(words, most=4)
        recognised.append(f"the line below the header is no row: it holds units ({few})")
    return Dialect(separator, decimal, None if units is None else line, recognised)


def _lines(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of lines that are not empty, with the number of the line, from 0."""
    rows = csv.reader(lines, delimiter=separator)
    for cells in rows:
        if len(cells) > 1 or "".join(cells).strip():
            yield rows.line_num - 1, cells


def _separator(text: str, usual: str) -> str:
    """Return what splits the header and the rows below it into equally many cells."""
    widths = {}
    for mark in _SEPARATORS:
        first = islice(_lines(io.StringIO(text, newline=""), mark), 20)
        widths[mark] = [len(cells) for _, cells in first]
    for mark, found in widths.items():
        if found and found[0] > 1 and len(set(found)) == 1:
            return mark
    # A row is longer or shorter than the header, which then decides alone. Names may hold spaces.
    split = [m for m in (usual, *widths) if m != " " and widths[m] and widths[m][0] > 1]
    return split[0] if split else usual


def _decimal_commas(rows: Sequence[Sequence[str]], separator: str) -> bool:
    if separator == ",":
        # In quotes, a comma may as well stand between thousands.
        return False
    cells = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    points = sum("." in cell and is_number(cell) for cell in cells)
    certain = separator == ";" or any(not _THOUSANDS.fullmatch(cell) for cell in commas)
    return certain and len(commas) > points


def _units(lines: list[tuple[int, list[str]]], decimal: str) -> tuple[int, list[str]] | None:
    """Return where the line of units is, if there is one, and the units.

    It is the first below the header, and holds words in columns of numbers, none of them again.
    """
    if len(lines) < 3:
        return None
    (line, first), (_, second) = lines[1:3]

    def number(cell: str) -> bool:
        return is_number(cell.replace(decimal, "."))

    columns = [j for j, cell in enumerate(second[: len(first)]) if number(cell)]
    words = {j: first[j].strip() for j in columns}
    known = {j: word for j, word in words.items() if word.lower() not in _NOTHING}
    again = any(cells[j].strip() == word for _, cells in lines[2:] for j, word in known.items()
                if j < len(cells))  # fmt: skip
    if not known or again or any(number(word) for word in words.values()):
        return None
    return line, list(dict.fromkeys(known.values()))


def read_header(lines: Iterable[str], separator: str) -> list[str]:
    """Return the names of the columns of a text file; refuse those that do not tell them apart.

    Parameters
    ----------
    lines : iterable of str
        Of the file, from its beginning.
    separator : str
    """
    filled = (cells for _, cells in _lines(lines, separator))
    header, first = next(filled, []), next(filled, [])
    if not header:
        raise DataError("the file is empty")
    if len(header) == 1:
        for other, called in _SEPARATORS.items():
            if other not in (separator, " ") and other in header[0]:
                shown = "'\\t'" if other == "\t" else repr(other)
                raise DataError(f"one column only; is {called} between cells? --delimiter {shown}")
    twice = [repr(column) for column, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"more than one column is called {listed(twice)}; rename them")
    if len(header) > 1 and all(is_number(cell) for cell in header):
        raise DataError("the first line holds numbers and no names; give each column a name")
    if len(first) > len(header):
        # Readers would take the first cell for the name of the row and shift the others.
        what = "name all columns there, and put no line above them"
        raise DataError(f"the rows have more cells than the first line has names; {what}")
    return header
