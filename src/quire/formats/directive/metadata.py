"""The parts of a directive that are plain elements: texts, attributes, cost, context, inputs and outputs."""

from __future__ import annotations

from quire.formats.directive.codes import warnings
from quire.formats.directive.found import Found, shown
from quire.formats.directive.syntax import Attributes, Context, Cost, Parameter, Text
from quire.formats.directive.xml import Element
from quire.formats.near_names import word_fix
from quire.plan.vocabulary import CONTEXT, PARAMETER_TYPES


def read_text(element: Element, found: Found) -> Text:
    return Text(element.all_text, element.text_span(found.source))


def read_attributes(element: Element, found: Found) -> Attributes:
    """Of an element that is nothing but attributes."""
    if element.all_text or element.children:
        message = f"<{element.tag}> is read from its attributes only: what stands in it has no effect"
        found.report(warnings.IGNORED_TEXT, message, element.opening, f'write <{element.tag} name="value" />')
    return _attributes(element, found)


def read_cost(element: Element, found: Found) -> Cost:
    cost = Cost(span=element.opening)
    for child in element.children:
        text = Text(child.own_text, child.text_span(found.source)) if child.own_text else None
        if child.tag == "context":
            cost.context, cost.tokens = _attributes(child, found), text
        elif child.tag == "duration":
            cost.duration = text
        elif child.tag == "spend":
            cost.spend = text
            currency = child.attributes.get("currency", "").strip()
            cost.currency = Text(currency, child.attribute_span(found.source, "currency")) if currency else None
        else:
            found.stray(child, "cost", ("context", "duration", "spend"))
    return cost


def read_context(element: Element, found: Found) -> Context:
    items: list[tuple[str, Text]] = []
    for child in element.children:
        if child.tag not in CONTEXT:
            found.stray(child, "context", CONTEXT)
        elif child.all_text:
            items.append((child.tag, read_text(child, found)))
    return Context(tuple(items), element.opening)


def read_inputs(element: Element, found: Found) -> tuple[Parameter, ...]:
    inputs: list[Parameter] = []
    for child in element.children:
        if child.tag == "input":
            inputs.append(_parameter(child, found))
        else:
            found.stray(child, "inputs", ("input",))
    return tuple(inputs)


def read_outputs(element: Element, found: Found) -> tuple[tuple[Parameter, ...], Text, Text]:
    """The outputs, and the messages that close the thread; a child of any other name is an output of that name."""
    outputs: list[Parameter] = []
    closing = {"success": Text("", element.opening), "failure": Text("", element.opening)}
    for child in element.children:
        if child.tag == "output":
            outputs.append(_parameter(child, found))
        elif child.tag in closing:
            closing[child.tag] = read_text(child, found)
        else:
            keyed = Parameter(child.tag, description=child.all_text, keyed=True, span=child.opening)
            outputs.append(keyed)
    return tuple(outputs), closing["success"], closing["failure"]


def _parameter(element: Element, found: Found) -> Parameter:
    given = element.attributes
    type = given.get("type", "").strip() or "string"
    if type not in PARAMETER_TYPES:
        meant = found.meant(type, PARAMETER_TYPES)
        help = f"did you mean {meant}?" if meant else f"types are {', '.join(PARAMETER_TYPES[:6])}"
        span = element.attribute_span(found.source, "type")
        message = f'values of the type "{shown(type)}" are not checked'
        found.report(
            warnings.PARAMETER_TYPE, message, span, help, word_fix(type, PARAMETER_TYPES, span) if meant else ()
        )
    return Parameter(
        name=given.get("name", "").strip(),
        type=type,
        required=found.truth(element, "required"),
        default=given.get("default"),
        description=element.all_text,
        span=element.opening,
    )


def _attributes(element: Element, found: Found) -> Attributes:
    spans = element.attribute_spans(found.source)
    return tuple(
        (name, Text(value.strip(), spans.get(name, element.opening))) for name, value in element.attributes.items()
    )
