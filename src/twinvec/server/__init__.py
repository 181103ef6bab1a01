"""The server: one process that many embedding clients share.

``settings`` says what to serve, ``models`` loads and runs it, ``batching`` joins the texts of many clients,
``wire`` is the border to HTTP, ``dialects`` are the formats that clients speak, and ``app`` puts them together.
"""
