"""The what-ifs of the book, one module a subject: questions asked of the library."""
