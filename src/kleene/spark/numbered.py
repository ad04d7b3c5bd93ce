"""A data frame whose columns go by their places: `c0`, `c1`, …

Spark's own calls stumble over names with dots, and cannot tell names apart that differ only in case; ours can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import StringType, StructType

from kleene.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What may come along with the rows of a stream and is no column of events: the source of a row, where in it the row
# stood, why it cannot be read (NULL when it can), and its text (NULL: its columns tell).
ALONG = ("_kleene_source", "_kleene_place", "_kleene_reason", "_kleene_text")
UNREADABLE = ALONG[2]


@dataclass(frozen=True)
class Numbered:
    """The renamed data frame, and the columns that it stands for."""

    frame: DataFrame
    columns: pa.Schema

    @staticmethod
    def of(frame: DataFrame) -> Numbered:
        """Columns that come along (`ALONG`) keep their names, stand at the end, and are not counted."""
        fields = [field for field in frame.schema if field.name not in ALONG]
        along = [name for name in frame.columns if name in ALONG]
        names = [f"c{place}" for place in range(len(fields))]
        remaining = iter(names)
        renamed = frame.toDF(*(name if name in ALONG else next(remaining) for name in frame.columns))
        return Numbered(renamed.select(*names, *along) if along else renamed, arrow_schema(StructType(fields)))

    @property
    def along(self) -> tuple[str, ...]:
        """The columns that come along with the events."""
        return ALONG if ALONG[0] in self.frame.columns else ()

    def name(self, name: str) -> str:
        """The name of a column here."""
        return f"c{self.columns.get_field_index(name)}"

    def column(self, name: str) -> Column:
        return functions.col(self.name(name))

    def type(self, name: str) -> pa.DataType:
        return self.columns.field(name).type

    def is_plain_string(self, name: str) -> bool:
        """Whether a column holds strings that compare by their code points, without collation and padding."""
        kind = self.frame.schema[self.columns.get_field_index(name)].dataType
        return kind == StringType()

    def where(self, condition: Column) -> Numbered:
        return Numbered(self.frame.where(condition), self.columns)
