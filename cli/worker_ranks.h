// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// "0-3,40"; "-" for none.
std::string FormatRanks(const std::set<int64_t>& worker_gids);

// The worker_gids of workers, as far as somebody has said them. One thread.
class WorkerRanks {
 public:
  // The best known rank of each core.
  void Take(const v1::ListWorkersReply& reply);
  // Of its streams, of which a capture has some only when it was asked for by itself.
  void Take(const v1::Capture& capture);

  std::string Format(const v1::WorkerIdentity& worker) const;

 private:
  using Key = std::tuple<std::string, std::string, uint32_t, uint64_t>;
  static Key KeyOf(const v1::WorkerIdentity& worker);

  std::map<Key, std::set<int64_t>> ranks_;
};

}  // namespace neurontrace::cli
