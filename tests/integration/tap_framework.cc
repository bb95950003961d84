// SPDX-License-Identifier: Apache-2.0
// A framework's library as the tap meets it: linked against libnrt.so.1, loaded by Python.
#include "tests/fake_nrt/nrt_api.h"

extern "C" __attribute__((visibility("default"))) int framework_init() {
  return nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "", "");
}

extern "C" __attribute__((visibility("default"))) void framework_close() { nrt_close(); }
