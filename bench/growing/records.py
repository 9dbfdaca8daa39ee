"""A folder of records, a file of JSON for each measured point, so that a measurement can be interrupted."""

import datetime
import json
import os


class Records:
    """`about` says on what is measured: processor, threads and what else the machine did (note). A record of
    another processor is measured again; nothing in a record depends on the version of ctxc."""

    def __init__(self, folder, about):
        self.folder, self.about = folder, about

    def path(self, key):
        return self.folder / f"{key}-{self.about['threads']}t.json"

    def read(self, key, anywhere=False):
        """The record of a point, if it was measured on this processor (or `anywhere`), else None."""
        path = self.path(key)
        if not path.is_file():
            return None
        record = json.loads(path.read_text())
        return record if anywhere or record["processor"] == self.about["processor"] else None

    def write(self, key, point, found):
        """Whole or not at all: what a killed run leaves is an unfinished file of another name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(key)
        unfinished = path.with_suffix(".part")
        with unfinished.open("w") as file:
            json.dump({**self.about, "date": datetime.date.today().isoformat(), "point": point, "found": found},
                      file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
