"""Physical plans as data: what runs, and what is tested where. Knows neither Arrow nor Spark."""
