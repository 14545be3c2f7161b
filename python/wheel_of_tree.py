# SPDX-License-Identifier: BSD-2-Clause
"""Builds the wheel of the one package here (PEP 517) with nothing but Python: `pip install` needs no network."""

import base64
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        project = dict(re.findall(r'^(name|version|description|requires-python) = "(.*)"$', file.read(), re.MULTILINE))
    with open(os.path.join(HERE, "xputrace", "__init__.py"), "rb") as file:
        code = file.read()
    stem = "%s-%s" % (project["name"], project["version"])
    info = stem + ".dist-info/"
    metadata = "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nRequires-Python: %s\nLicense: BSD-2-Clause\n" % (
        project["name"], project["version"], project["description"], project["requires-python"])
    files = {"xputrace/__init__.py": code, info + "METADATA": metadata.encode(),
             info + "WHEEL": b"Wheel-Version: 1.0\nGenerator: xputrace\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join("%s,sha256=%s,%d\n" % (name, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(),
                                            len(data)) for name, data in files.items())
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    name = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, data in files.items():
            wheel.writestr(each, data)
    return name
