"""The picture of README.md, made anew by the code that stands below it there: python docs/images/readme_picture.py"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
sys.path.insert(0, str(HERE.parent))

import snippets  # noqa: E402


def main() -> None:
    (HERE / "synthetic.png").write_bytes(snippets.run(README).files["synthetic.png"])


if __name__ == "__main__":
    main()
