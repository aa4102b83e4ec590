"""The rules: one module each, named after the defect, with Why, Example and Instead in its docstring."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from tavola.design.lint.rule import Rule, load_rule

RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (load_rule(import_module(f"{__name__}.{module.name}")) for module in iter_modules(__path__))
}
