"""What a what-if answers."""

from dataclasses import dataclass

from commwall.whatif.pictures import Picture, Table

__all__ = ["Answer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a what-if says: one sentence, labelled numbers, a picture, its table."""

    finding: str
    facts: tuple[tuple[str, str], ...]
    picture: Picture
    table: Table | None = None  # None: the picture's own

    @property
    def numbers(self) -> Table:
        """The table under the picture."""
        return self.table or self.picture.table()
