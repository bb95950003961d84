// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace neurontrace {

// Where this aggregator serves the page.
class PageAddress {
 public:
  virtual ~PageAddress() = default;
  // Returns the page's address for people, such as "https://aggregator.example:9403/"; "" if it is
  // not served. Any thread.
  virtual std::string PageUrl() const = 0;
};

}  // namespace neurontrace
