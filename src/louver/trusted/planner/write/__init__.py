"""What a change lets a server know: the information flow from encrypted columns to what is written.

`flow` is the rule; `relation` derives what a query's columns and rows depend on, by the grammar
of `grammar`; `reads` is what a statement may depend on where it is not in that grammar.
"""
