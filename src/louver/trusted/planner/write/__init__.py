"""What a change reveals to a server: information flow from encrypted columns to written values.

`information_flow` is the rule; `relation` derives the lineage of a query's columns and rows, for
the grammar of `grammar`; `reads` is what a statement outside of that grammar may depend on.
"""
