"""Builds the wheel with the standard library alone: `python3 wheel_builder.py FOLDER`, or by pip (PEP 517)."""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
EPOCH = (1980, 1, 1, 0, 0, 0)  # equal sources make equal wheels


def _version():
    text = (HERE / "../../base/version.h").resolve().read_text()
    return re.search(r'MS_VERSION "(.*)"', text).group(1)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into a folder and returns its file name."""
    version = _version()
    info = f"meshsim-{version}.dist-info"
    files = {f"meshsim/{path.name}": path.read_bytes() for path in sorted((HERE / "meshsim").glob("*.py"))}
    summary = re.search(r'description = "(.*)"', (HERE / "pyproject.toml").read_text()).group(1)
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: meshsim\nVersion: {version}\nSummary: {summary}\n"
                                 "Requires-Python: >=3.9\n").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: meshsim\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"meshsim-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, content)
    return wheel


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))
