"""Our nodes beside other nodes of ComfyUI: each of our modes with each of them, on each kind of
model.

A new row is one ``Other`` in a file of ``others``. Where it does less than work it says so by a
``Limit``, which the test holds it to. Then the whole table is tried and written by
``python -m devtools test tests/interplay --long --write-compatibility``.
"""
