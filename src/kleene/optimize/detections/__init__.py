"""From a query in EQL to the plan of its operators."""
