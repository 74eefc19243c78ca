"""Checks JSON documents against docs/schemas: schemas.py FOLDER FILE..., each file a golden case (.test), whose outputs are
checked, or a document. Prints the faults; the last line says how many documents there were."""
import json
import pathlib
import re
import sys
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # RefResolver: Debian 12 has nothing newer
from jsonschema import Draft202012Validator, RefResolver


def documents(path):
    """The JSON objects with a schema in a document, or in the standard output and the written files of a golden case."""
    text = path.read_text(errors="replace")
    if path.suffix == ".test":
        text = text.partition("\n--- stdout\n")[2].partition("\n--- stderr\n")[0]
    for part in re.split(r"^==> .*\n", text, flags=re.M):
        if part.lstrip().startswith("{"):
            try:
                document = json.loads(part)
            except ValueError:
                continue  # several objects, or one that a reader cut
            if str(document.get("schema", "")).startswith("meshsim."):
                yield document


def main():
    folder = pathlib.Path(sys.argv[1])
    schemas = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    for name, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == name, name
    seen, faults = [], 0
    for path in map(pathlib.Path, sys.argv[2:]):
        for document in documents(path):
            name = document["schema"].removeprefix("meshsim.").replace("/", "-") + ".json"
            seen.append(name)
            if name not in schemas:
                print(f"{path}: there is no docs/schemas/{name}")
                faults += 1
                continue
            resolver = RefResolver(name, schemas[name], store=schemas)
            for error in Draft202012Validator(schemas[name], resolver=resolver).iter_errors(document):
                print(f"{path}: {name}: at {error.json_path}: {error.message[:200]}")
                faults += 1
    print(f"{len(seen)} documents of {len(set(seen))} schemas, {faults} faults")
    return 1 if faults or not seen else 0


sys.exit(main())
