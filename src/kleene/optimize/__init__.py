"""From a bound query to a physical plan: one rule a file. Knows neither Arrow nor Spark."""
