"""The format of a file: by its name, or by its first lines if the name does not decide."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from ensue.data.formats import endings, format_names, format_of_ending, formats
from ensue.data.stream import DamagedStream, open_file, pieces
from ensue.errors import DataError

ZIP, OLE = b"PK\x03\x04", bytes.fromhex("D0CF11E0A1B11AE1")
DIRECTORY = 1 << 16  # bytes at the end of a zip file that contain the names of its members
AS_CSV = "save it as CSV (File → Save As… → CSV UTF-8), or in Python: "


class ForeignFile(NamedTuple):
    """A file of another program. endings: possible endings of the name; magic: possible first
    bytes; inside: a file in zip files of this kind; advice: what to do, with {python} and {shell}
    for the file's name as a literal, {csv} for the name of a table to write; format: the format of
    Ensue that it is."""

    what: str
    endings: tuple[str, ...]
    magic: tuple[bytes, ...]
    advice: str
    inside: bytes = b""
    format: str = ""

    def holds(self, content: bytes) -> bool:
        return content.startswith(self.magic) and self.inside in content


PICKLE = (
    "loading one executes the code in it, so Ensue never does; where it was made, write the "
    "rows as CSV, frame.to_csv({csv}, index=False), or as JSON lines"
)
FOREIGN_FILES = (
    ForeignFile(
        "an Excel workbook",
        (".xlsx", ".xlsm"),
        (ZIP,),
        AS_CSV + "pandas.read_excel({python}).to_csv({csv}, index=False)",
        inside=b"xl/workbook",
    ),
    ForeignFile(
        "an Excel workbook",
        (".xls",),
        (OLE,),
        AS_CSV + "pandas.read_excel({python}).to_csv({csv}, index=False)",
    ),
    ForeignFile(
        "an OpenDocument spreadsheet",
        (".ods",),
        (ZIP,),
        AS_CSV + "pandas.read_excel({python}, engine='odf').to_csv({csv}, index=False)",
        inside=b"opendocument.spreadsheet",
    ),
    ForeignFile(
        "a Word document",
        (".docx",),
        (ZIP,),
        "save it as plain text (File → Save As… → Plain Text, UTF-8), with one row on each line",
        inside=b"word/document",
    ),
    ForeignFile(
        "a PDF",
        (".pdf",),
        (b"%PDF-",),
        "extract its text, as with pdftotext {shell}, and save it as .txt with one row on each "
        "line, or with labels as .csv",
    ),
    ForeignFile("a file of PyTorch", (".pt", ".pth"), (ZIP,), PICKLE, inside=b"/data.pkl"),
    ForeignFile(
        "a pickle",
        (".pkl", ".pickle", ".joblib"),
        tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6)),
        PICKLE,
    ),
    ForeignFile(
        "a NumPy archive",
        (".npz",),
        (ZIP,),
        "give its arrays to `fit` in Python, or write one as CSV: "
        "pandas.DataFrame(numpy.load({python})[NAME]).to_csv({csv}, index=False)",
        inside=b".npy",
    ),
    ForeignFile(
        "a NumPy array",
        (".npy",),
        (b"\x93NUMPY",),
        "give the array to `fit` in Python, or write it as CSV: "
        "pandas.DataFrame(numpy.load({python})).to_csv({csv}, index=False)",
    ),
    ForeignFile(
        "a Feather file",
        (".feather", ".arrow"),
        (b"ARROW1\0\0",),
        "write it as CSV: pandas.read_feather({python}).to_csv({csv}, index=False)",
    ),
    ForeignFile(
        "an SQLite database",
        (".sqlite", ".sqlite3", ".db"),
        (b"SQLite format 3\0",),
        "write a table of it as CSV: sqlite3 -header -csv {shell} 'select * from NAME' > {csv}",
    ),
    ForeignFile(
        "a picture",
        (".png", ".jpg", ".jpeg", ".gif"),
        (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8"),
        "give a folder with a folder of pictures for each class, or a table that names the file "
        "of each picture and its caption",
    ),
    ForeignFile("a Parquet file", (), (b"PAR1\x15",), "use --format parquet", format="parquet"),
    ForeignFile("a zip archive", (".zip",), (ZIP,), "unpack it, as with unzip {shell}"),
    ForeignFile("a tar archive", (".tar", ".tgz"), (), "unpack it, as with tar xf {shell}"),
    ForeignFile(
        "a packed file",
        (".bz2", ".xz", ".zst", ".7z", ".rar"),
        (
            *(b"BZh%d1AY" % level for level in range(1, 10)),
            b"\xfd7zXZ\0",
            b"\x28\xb5\x2f\xfd",
            b"7z\xbc\xaf\x27\x1c",
            b"Rar!\x1a\x07",
        ),
        "unpack it; a single file may be compressed with gzip",
    ),
)


def refuse_foreign(path: Path, format: str | None) -> None:
    """Raises `DataError` with advice for a file of another program. format: its assumed format;
    None if neither its name nor an option decides."""
    content = _content(path)
    alike = [foreign for foreign in FOREIGN_FILES if foreign.holds(content)]
    by_name = [foreign for foreign in FOREIGN_FILES if _ending(path) in foreign.endings]
    if alike:
        foreign = next((each for each in by_name if each in alike), alike[0])
        if not foreign.format:
            raise _refused(
                path, f"this is {foreign.what}, which Ensue does not read", foreign.advice
            )
        if foreign.format != format:
            raise _refused(path, f"this is {foreign.what}", foreign.advice)
    elif by_name and format is None:
        what, advice = by_name[0].what, by_name[0].advice
        if not by_name[0].magic:
            raise _refused(path, f"{what} is not read", advice)
        text = "if it is text, name its format with --format, such as csv"
        raise _refused(path, f"the file is named like {what}, but the content is different", text)


def _refused(path: Path, what: str, advice: str) -> DataError:
    table = path.with_suffix(".csv").name
    csv = repr(table if table != path.name else "rows.csv")
    return DataError(
        f"{path}: {what}: " + advice.format(python=repr(str(path)), shell=quote(str(path)), csv=csv)
    )


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _content(path: Path) -> bytes:
    """The beginning of the file, unpacked if it is gzip; of a zip file also its end."""
    try:
        first = next(pieces(path), b"")
    except DamagedStream:
        return b""
    if not first.startswith(ZIP):
        return first
    with open_file(path) as file:
        file.seek(-min(DIRECTORY, os.path.getsize(path)), os.SEEK_END)
        return first + file.read()


AUTO, FOLDER, TEXT = "auto", "folder", "text"
BYTE_ORDER_MARK = "\ufeff"
LOOKED_AT = 100  # lines


def format_of(path: Path, name_of_format: str = AUTO) -> str:
    """The named format, or the recognised one. Folders count as folders of texts; files of other
    programs raise an error with advice."""
    if path.is_dir():
        return FOLDER if name_of_format == AUTO else name_of_format
    name = path.name.lower().removesuffix(".gz")
    name_found = format_of_ending(Path(name).suffix) if name_of_format == AUTO else name_of_format
    if path.is_file():
        refuse_foreign(path, name_found)
        if name_of_format == AUTO and name_found in (None, TEXT):
            name_found = _by_first_lines(path) or name_found
    if name_found is None:
        raise DataError(
            f"{path}: the name does not tell the format (known: {', '.join(endings())}, "
            f"each also with .gz); use --format with one of {', '.join(format_names())}"
        )
    return name_found


def _by_first_lines(path: Path) -> str | None:
    """The format that recognises the first lines; None if there is none."""
    try:
        content = next(pieces(path), b"").decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
    except DamagedStream:
        return None
    lines = content.split("\n")
    whole = lines[:-1] or lines  # the last line may be incomplete
    first = [line.removesuffix("\r") for line in whole[:LOOKED_AT]]
    return next((form.name for form in formats() if form.recognised(first)), None)
