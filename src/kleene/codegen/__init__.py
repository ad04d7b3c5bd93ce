"""From bound expressions to programs of the expression machine. Knows neither Arrow nor Spark."""
