"""A JSON schema as Gemini's ``responseSchema``: the subset of OpenAPI 3.0 it knows, and nothing else.

Documented form: Gemini API reference, "Schema" (generationConfig.responseSchema), as of November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = frozenset(
    {
        "format", "title", "description", "nullable", "enum", "required", "minItems", "maxItems",
        "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern",
    }
)  # fmt: skip


def response_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in Google's words; what it has no word for is left out, which only makes it looser.

    Raises
    ------
    ValueError: it refers to definitions, which the subset cannot say.

    Examples
    --------
    >>> response_schema({"type": ["string", "null"], "additionalProperties": False})
    {'type': 'STRING', 'nullable': True}
    """
    if "$ref" in schema:
        raise ValueError("the schema refers to definitions ($ref)")
    made: dict[str, Any] = {}
    kind = schema.get("type")
    if isinstance(kind, list):
        named = [str(each) for each in kind if each != "null"]
        if len(named) == 1:
            made["type"] = named[0].upper()
        elif named:
            made["anyOf"] = [{"type": each.upper()} for each in named]
        if "null" in kind:
            made["nullable"] = True
    elif isinstance(kind, str):
        made["type"] = kind.upper()
    if "const" in schema:
        made |= {"type": made.get("type", "STRING"), "enum": [schema["const"]]}
    made |= {name: schema[name] for name in schema if name in _KEPT}
    if "enum" in made and "type" not in made:
        made["type"] = "STRING"
    if isinstance(schema.get("properties"), Mapping):
        made["properties"] = {
            name: response_schema(inner) for name, inner in schema["properties"].items()
        }
        made["propertyOrdering"] = list(schema["properties"])
    if isinstance(schema.get("items"), Mapping):
        made["items"] = response_schema(schema["items"])
    for name in ("anyOf", "oneOf"):
        if isinstance(schema.get(name), list):
            made["anyOf"] = [response_schema(inner) for inner in schema[name]]
    return made
