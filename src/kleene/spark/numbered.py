"""A data frame whose columns go by their places: `c0`, `c1`, …

Spark's own calls stumble over names with dots, and cannot tell names apart that differ only in case; ours can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import StringType

from kleene.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Numbered:
    """The renamed data frame, and the columns that it stands for."""

    frame: DataFrame
    columns: pa.Schema

    @staticmethod
    def of(frame: DataFrame) -> Numbered:
        columns = arrow_schema(frame.schema)
        return Numbered(frame.toDF(*(f"c{place}" for place in range(len(columns)))), columns)

    def name(self, name: str) -> str:
        """What a column is called here."""
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
