"""What a what-if asks: controls, and a function of the library that answers them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from commwall.whatif.answers import Answer
from commwall.whatif.controls import Control

__all__ = ["Question"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """`answer` takes what the controls hold, by name and in SI."""

    name: str
    title: str
    controls: tuple[Control, ...]
    answer: Callable[..., Answer]

    @property
    def initial(self) -> dict[str, str]:
        """What all controls hold at first, as text."""
        return {control.name: control.initial for control in self.controls}

    def settings(self, texts: Mapping[str, str]) -> tuple[dict, dict[str, str]]:
        """Values by name, and what is wrong with the others."""
        values, errors = {}, {}
        for control in self.controls:
            try:
                values[control.name] = control.value(texts[control.name])
            except ValueError as error:
                errors[control.name] = str(error)
        return values, errors

    def ask(self, **changed: str) -> Answer:
        """The answer with some controls set, as text; the others as at first."""
        values, errors = self.settings(self.initial | changed)
        if errors:
            raise ValueError("; ".join(errors.values()))
        return self.answer(**values)
