// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/name_list.h"

#include <cstdlib>
#include <cstring>

namespace neurontrace {

NRT_STATUS MakeNameList(const std::vector<std::string_view>& names, const char*** list,
                        size_t* count) {
  if (list == nullptr || count == nullptr) return NRT_INVALID;
  auto** array = static_cast<const char**>(std::calloc(names.size() + 1, sizeof(char*)));
  if (array == nullptr) return NRT_RESOURCE;
  for (size_t i = 0; i < names.size(); ++i) {
    array[i] = strndup(names[i].data(), names[i].size());
  }
  *list = array;
  *count = names.size();
  return NRT_SUCCESS;
}

void FreeNameList(const char** list, size_t count) {
  if (list == nullptr) return;
  for (size_t i = 0; i < count; ++i) std::free(const_cast<char*>(list[i]));
  std::free(list);
}

}  // namespace neurontrace
