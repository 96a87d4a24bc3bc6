"""Models over HTTP: three streaming protocols in, one kind of pieces out.

``pieces`` is what every protocol is turned into; ``responses``, ``chat`` and ``messages`` do it, purely, one module per protocol, each
with both directions: the request's body and the stream's chunks. ``client`` moves the bytes, ``endpoint`` says where to.
"""
