"""What a schema declares: texts of objects, constraints, sequences, what each column stores."""
