// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/page_callers.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "lib/base/sha256.h"

namespace neurontrace {

PageCallers::Ticket::~Ticket() {
  const MutexLock lock(callers_.mutex_);
  callers_.callers_.erase(Sha256HexOf(text_));
}

std::unique_ptr<PageCallers::Ticket> PageCallers::Issue(PageCaller caller) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:016x}", random_.Next64());
  auto known = std::make_shared<const PageCaller>(std::move(caller));
  {
    const MutexLock lock(mutex_);
    callers_.emplace(Sha256HexOf(text), std::move(known));
  }
  return std::make_unique<Ticket>(*this, std::move(text));
}

std::shared_ptr<const PageCaller> PageCallers::Find(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) const {
  const auto header = metadata.find(kTicket);
  if (header == metadata.end()) return nullptr;
  const std::string key =
      Sha256HexOf(std::string_view(header->second.data(), header->second.size()));
  const MutexLock lock(mutex_);
  const auto found = callers_.find(key);
  return found == callers_.end() ? nullptr : found->second;
}

size_t PageCallers::size() const {
  const MutexLock lock(mutex_);
  return callers_.size();
}

}  // namespace neurontrace
