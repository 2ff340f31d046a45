"""The cases of Kubernetes' own table of device selectors: what is selected, what fails, and the estimated cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from bayplan.cel import CompileError, EvaluationError
from bayplan.cel.devices import compile_selector, device_variable

DRIVER = "dra.example.com"
NAME = 'device.attributes["dra.example.com"].name'
NAMES = 'device.attributes["dra.example.com"].names'
LONGEST_VALUE, MOST_VALUES = 64, 48


@dataclass(frozen=True)
class Case:
    """An expression, a device, and what comes out. Without a setting for lists, both settings give the same."""

    name: str
    expression: str
    expected: bool | str
    cost: int = 0
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    capacity: dict[str, str] = field(default_factory=dict)
    driver: str = DRIVER
    lists: bool | None = None
    is_new: bool = False
    consumable: bool = True
    multiple: bool | None = None


def name_is(kind: str, value: object) -> dict[str, dict[str, Any]]:
    return {"name": {kind: value}}


ALL = f"""
device.capacity["{DRIVER}"].quantity.isGreaterThan(quantity("1Ki")) &&
device.attributes["{DRIVER}"].bool &&
device.attributes["{DRIVER}"].int > 0 &&
device.attributes["{DRIVER}"].string == "fish" &&
device.attributes["{DRIVER}"].version.isGreaterThan(semver("0.0.1")) &&
device.capacity["{DRIVER}"]["quantity"].isGreaterThan(quantity("1Ki")) &&
device.attributes["{DRIVER}"]["bool"] &&
device.attributes["{DRIVER}"]["int"] > 0 &&
device.attributes["{DRIVER}"]["string"] == "fish" &&
device.attributes["{DRIVER}"]["version"].isGreaterThan(semver("0.0.1"))
"""
TENS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
EXPENSIVE = "int('1'.find('[0-9]*')) < 100"
for variable in ("z5", "z4", "z3", "z2", "z", "y", "x"):
    EXPENSIVE = f"{TENS}.all({variable}, {EXPENSIVE})"
SERVICES = {"services": {"string": "some_example_value"}}
VALUES = [f"value-{position}" for position in range(MOST_VALUES + 1)]

PLAIN = [
    Case("true", "true", True),
    Case("false", "false", False),
    Case("syntax error", "?!", "compile: Syntax error"),
    Case("type error", "1", "compile: must evaluate to bool or the unknown type, not int"),
    Case(
        "missing identifier",
        'device.attributes["no-such-domain"].noSuchAttr.isGreaterThan(quantity("0"))',
        "no such key: noSuchAttr",
        6,
    ),
    Case(
        "missing key",
        'device.attributes["no-such-domain"]["noSuchAttr"].isGreaterThan(quantity("0"))',
        "no such key: noSuchAttr",
        6,
    ),
    Case("domain absent", '"no-such-domain" in device.attributes', False, 3),
    Case("domain present", f'"{DRIVER}" in device.attributes', True, 3, {f"{DRIVER}/something": {"bool": True}}),
    Case("empty driver", 'device.driver == ""', True, 2, driver=""),
    Case("driver", f'device.driver == "{DRIVER}"', True, 4),
    Case("driver as domain", NAME, True, 4, name_is("bool", True)),
    Case("driver as domain by key", f'device.attributes["{DRIVER}"]["name"]', True, 4, name_is("bool", True)),
    Case("bind", f'cel.bind(dra, device.attributes["{DRIVER}"], dra.name)', True, 15, name_is("bool", True)),
    Case(
        "qualified attribute",
        'device.attributes["other.example.com"].name',
        True,
        4,
        {"other.example.com/name": {"bool": True}},
    ),
    Case("bool", NAME, True, 4, name_is("bool", True)),
    Case("int", f"{NAME} > 0", True, 5, name_is("int", 1)),
    Case("string", f'{NAME} == "fish"', True, 5, name_is("string", "fish")),
    Case("version", f'{NAME}.isGreaterThan(semver("0.0.1"))', True, 6, name_is("version", "1.0.0")),
    Case(
        "version with v",
        f'{NAME}.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)',
        True,
        7,
        name_is("version", "1.0.0"),
    ),
    Case(
        "quantity",
        f'device.capacity["{DRIVER}"].name.isGreaterThan(quantity("1Ki"))',
        True,
        6,
        capacity={"name": "1Mi"},
    ),
    Case(
        "checked, present",
        f'"name" in device.capacity["{DRIVER}"] && device.capacity["{DRIVER}"].name.isGreaterThan(quantity("1Ki"))',
        True,
        10,
        capacity={"name": "1Mi"},
    ),
    Case(
        "checked, absent",
        f'!("name" in device.capacity["{DRIVER}"]) || device.capacity["{DRIVER}"].name.isGreaterThan(quantity("1Ki"))',
        True,
        11,
    ),
    Case(
        "all of it",
        ALL,
        True,
        52,
        {"bool": {"bool": True}, "int": {"int": 1}, "string": {"string": "fish"}, "version": {"version": "1.0.0"}},
        {"quantity": "1Mi"},
    ),
    Case(
        "many",
        " && ".join(f'device.attributes["{DRIVER}"].{letter}' for letter in "abc"),
        True,
        12,
        {letter: {"bool": True} for letter in "abc"},
    ),
    Case("attribute domains", f'device.attributes.exists_one(x, x == "{DRIVER}")', True, 164, SERVICES),
    Case("attribute ids", f'device.attributes["{DRIVER}"].exists_one(x, x == "services")', True, 133, SERVICES),
    Case("split", f'device.attributes["{DRIVER}"].services.split("example").size() >= 2', True, 19, SERVICES),
    Case(
        "pattern",
        f'device.attributes["{DRIVER}"].services.matches("[^a]?sym")',
        True,
        18,
        {"services": {"string": "asymetric"}},
    ),
    Case("capacity domains", f'device.capacity.exists_one(x, x == "{DRIVER}")', True, 164, capacity={"memory": "1Mi"}),
    Case(
        "capacity ids",
        f'device.capacity["{DRIVER}"].exists_one(x, x == "memory")',
        True,
        133,
        capacity={"memory": "1Mi"},
    ),
    Case("expensive", EXPENSIVE, "actual cost limit exceeded", 85555551),
    Case("multiple", "device.allowMultipleAllocations == true", True, 3, multiple=True),
    Case("multiple, default", "device.allowMultipleAllocations == false", True, 3),
    Case("multiple, false", "device.allowMultipleAllocations == false", True, 3, multiple=False),
    Case("multiple, stored", "device.allowMultipleAllocations == false", True, 3, consumable=False),
    Case("multiple, new", "device.allowMultipleAllocations == false", True, 3, multiple=False, is_new=True),
    Case(
        "multiple, new without the feature",
        "device.allowMultipleAllocations == false",
        "compile: undefined field 'allowMultipleAllocations'",
        is_new=True,
        consumable=False,
    ),
    Case(
        "list without the feature",
        NAMES,
        "attribute names: unsupported attribute value",
        4,
        {"names": {"strings": ["fish", "bird"]}},
        lists=False,
    ),
    Case(
        "includes, new without the feature",
        f'{NAME}.includes("fish")',
        "compile: undeclared reference to 'includes'",
        lists=False,
        is_new=True,
    ),
]


def listed(name: str, expression: str, expected: bool | str, cost: int, attribute: dict[str, Any]) -> Case:
    attributes = {"name": attribute, "names": attribute}
    return Case(name, expression, expected, cost, attributes, lists=True, is_new=True)


LISTS = [
    listed(
        "exists on int", f"{NAME}.exists(x, x > 0)", "got 'types.Int', expected iterable type", 5 + 6 * 64, {"int": 1}
    ),
    listed(
        "exists on bool",
        f"{NAME}.exists(x, x == true)",
        "got 'types.Bool', expected iterable type",
        5 + 6 * 64,
        {"bool": True},
    ),
    listed(
        "exists on string",
        f'{NAME}.exists(x, x == "fish")',
        "got 'types.String', expected iterable type",
        5 + 6 * 64,
        {"string": "fish"},
    ),
    listed(
        "exists on version",
        f'{NAME}.exists(x, x.isGreaterThan(semver("0.0.1")))',
        "got 'cel.Semver', expected iterable type",
        5 + 7 * 64,
        {"version": "1.0.0"},
    ),
    *(
        listed(f"size of {field}", f"{NAMES}.size() == 2", True, 6, {field: values})
        for field, values in (
            ("bools", [True, False]),
            ("ints", [1, 2]),
            ("strings", ["fish", "bird"]),
            ("versions", ["1.0.0", "2.0.0"]),
        )
    ),
    listed("exists on ints", f"{NAMES}.exists(x, x > 0)", True, 5 + 6 * 64, {"ints": [1, 2]}),
    listed("all on strings", f'{NAMES}.all(x, x != "")', True, 5 + 4 * 64, {"strings": ["fish", "bird"]}),
    listed(
        "all on versions",
        f'{NAMES}.all(x, x.isGreaterThan(semver("0.0.1")))',
        True,
        5 + 6 * 64,
        {"versions": ["1.0.0", "2.0.0"]},
    ),
    *(
        listed(f"includes {sought} in {attribute}", f"{NAME}.includes({sought})", expected, 52, attribute)
        for sought, expected, attribute in (
            ("true", True, {"bool": True}),
            ("true", False, {"bool": False}),
            ("true", True, {"bools": [True, False]}),
            ("false", False, {"bools": [True, True]}),
            ("1", True, {"int": 1}),
            ("1", False, {"int": 2}),
            ("1", True, {"ints": [1, 2]}),
            ("3", False, {"ints": [1, 2]}),
            ('"fish"', True, {"string": "fish"}),
            ('"bird"', False, {"string": "fish"}),
            ('"fish"', True, {"strings": ["fish", "bird"]}),
            ('"cat"', False, {"strings": ["fish", "bird"]}),
        )
    ),
    *(
        listed(
            f"includes version {sought} in {attribute}", f'{NAME}.includes(semver("{sought}"))', expected, 53, attribute
        )
        for sought, expected, attribute in (
            ("1.0.0", True, {"version": "1.0.0"}),
            ("2.0.0", False, {"version": "1.0.0"}),
            ("1.0.0", True, {"versions": ["1.0.0", "2.0.0"]}),
            ("3.0.0", False, {"versions": ["1.0.0", "2.0.0"]}),
        )
    ),
    listed("includes in a long list", f'{NAME}.includes("value-48")', False, 52, {"strings": VALUES[:MOST_VALUES]}),
    listed(
        "includes in a list that is too long",
        f'{NAME}.includes("value-49")',
        "'includes' function cannot be applied to lists longer than 48 values",
        52,
        {"strings": VALUES},
    ),
    listed("in a list", f"1 in {NAMES}", True, 4 + 64, {"ints": [1, 2, 3]}),
]


@pytest.mark.parametrize("case", [*PLAIN, *LISTS], ids=lambda case: case.name)
def test_selectors_answer_as_those_of_kubernetes_do(case: Case) -> None:
    settings = (False, True) if case.lists is None else (case.lists,)
    for lists in settings[-1:] if case.name == "expensive" else settings:
        check(case, lists)


def check(case: Case, lists: bool) -> None:
    device = device_variable(
        driver=case.driver,
        attributes=case.attributes,
        capacity=case.capacity,
        allow_multiple_allocations=case.multiple,
        list_attributes=lists,
    )
    settings = {"consumable_capacity": case.consumable, "list_attributes": lists, "is_new": case.is_new}
    if isinstance(case.expected, str) and case.expected.startswith("compile: "):
        with pytest.raises(CompileError, match=case.expected.removeprefix("compile: ").replace("'", ".")):
            compile_selector(case.expression, **settings)
        return
    selector = compile_selector(case.expression, **settings)
    exact = selector.evaluate(device)

    assert case.cost == selector.max_cost
    assert exact.cost <= selector.max_cost
    if isinstance(case.expected, str):
        assert case.expected in str(exact.error)
        if case.name == "expensive":
            return
        with pytest.raises(EvaluationError) as raised:
            selector.matches(device)
        assert case.expected in str(raised.value)
    else:
        assert case.expected is exact.value
        assert case.expected is selector.matches(device)


def test_the_table_has_all_cases() -> None:
    assert len(PLAIN) + len(LISTS) >= 69
