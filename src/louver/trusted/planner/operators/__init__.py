"""What several rules share: key algebra, sums, comparisons and groups, on key symbols."""
