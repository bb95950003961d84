# SPDX-License-Identifier: Apache-2.0
"""What the package `nvtx` does to a tool's library, for machines without the package: it loads the library of
NVTX_INJECTION64_PATH, has it fill the tables of callbacks, and calls these."""
import ctypes
import os

Function = ctypes.c_void_p
Place = ctypes.POINTER(Function)
GetTable = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.POINTER(Place)),
                            ctypes.POINTER(ctypes.c_uint))
GetExports = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
SIZE = 16
CORE, CORE2 = 1, 5


class Callbacks(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("get_module_function_table", GetTable)]


class Attributes(ctypes.Structure):
    """nvtxEventAttributes_v2 with a payload of 64 bits and a message of char."""
    _fields_ = [("version", ctypes.c_uint16), ("size", ctypes.c_uint16), ("category", ctypes.c_uint32),
                ("color_type", ctypes.c_int32), ("color", ctypes.c_uint32), ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("payload", ctypes.c_int64), ("message_type", ctypes.c_int32),
                ("message", ctypes.c_char_p)]


class Nvtx:
    def __init__(self):
        self.functions = {module: (Function * SIZE)() for module in (CORE, CORE2)}
        self.places = {module: (Place * SIZE)() for module in (CORE, CORE2)}
        for module, functions in self.functions.items():
            for i in range(SIZE):
                address = ctypes.addressof(functions) + i * ctypes.sizeof(Function)
                self.places[module][i] = ctypes.cast(address, Place)
        self._get_table = GetTable(self._table)
        self._callbacks = Callbacks(ctypes.sizeof(Callbacks), self._get_table)
        self._get_exports = GetExports(lambda table: ctypes.addressof(self._callbacks) if table == 1 else None)
        library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
        if library.InitializeInjectionNvtx2(self._get_exports) != 1:
            raise RuntimeError("the library refused")
        self._push_ex = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Attributes))(
            self.functions[CORE2][4])
        self._pop = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self.functions[CORE2][5])
        self._mark = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(self.functions[CORE][2])
        self._name_category = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p)(
            self.functions[CORE2][8])
        create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(self.functions[CORE2][12])
        self._domain = create(b"train")
        self._name_category(self._domain, 5, b"phase")

    def _table(self, module, table, size):
        if module not in self.places:
            return 0
        table[0] = ctypes.cast(self.places[module], ctypes.POINTER(Place))
        size[0] = SIZE
        return 1

    def push(self, message, domain=False, category=False, payload=None):
        attributes = Attributes(version=3, size=ctypes.sizeof(Attributes), category=5 if category else 0,
                                payload_type=0 if payload is None else 2, payload=payload or 0, message_type=1,
                                message=message.encode())
        self._push_ex(self._domain if domain else None, ctypes.byref(attributes))

    def pop(self, domain=False):
        self._pop(self._domain if domain else None)

    def mark(self, message):
        self._mark(message.encode())


class Package:
    """The same by the package of that name."""

    def __init__(self):
        import nvtx  # pylint: disable=import-outside-toplevel
        self.nvtx = nvtx

    def push(self, message, domain=False, category=False, payload=None):
        self.nvtx.push_range(message, domain="train" if domain else None, category="phase" if category else None,
                             payload=payload)

    def pop(self, domain=False):
        self.nvtx.pop_range(domain="train" if domain else None)

    def mark(self, message):
        self.nvtx.mark(message)
