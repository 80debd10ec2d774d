"""Files and folders, on disks and on mounts: a file is read if its stat differs, a folder says which files there are.

`names` has the one form of paths as keys and says which mount a path is on, `look` makes the system calls, `threads` is
where they wait, one mount beside the other, `notices` is told of changes by the operating system, and `source` is the
source itself.
"""

from afresh.sources.files.look import Limits
from afresh.sources.files.names import key_of, path_of
from afresh.sources.files.source import ROOTS, Files

__all__ = ["ROOTS", "Files", "Limits", "key_of", "path_of"]
