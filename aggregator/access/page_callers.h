// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "aggregator/access/authenticator.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"

namespace neurontrace {

// Who makes a call that the page's server makes within this process. A plain value.
struct PageCaller {
  Credentials credentials;
  std::string from;  // the browser's address, as gRPC writes peers
};

// The callers on whose behalf the page's server makes calls. Such a call reaches no port, so it has
// no certificate, and it is not judged before its handler. It has a ticket in its metadata instead:
// 256 random bits that only this process knows, and only while the call lasts. A ticket that
// somebody invents is none, and its call is what it would be without. Any thread. Owned by
// AccessControl.
class PageCallers {
 public:
  // The metadata's key.
  static constexpr char kTicket[] = "neurontrace-page-ticket";

  // A caller's ticket, valid while this object lives. Must not outlive the PageCallers.
  class Ticket {
   public:
    Ticket(PageCallers& callers, std::string text) : callers_(callers), text_(std::move(text)) {}
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    const std::string& text() const { return text_; }

   private:
    PageCallers& callers_;
    const std::string text_;
  };

  std::unique_ptr<Ticket> Issue(PageCaller caller);
  // Returns the caller of the ticket in the metadata of a call, or null.
  std::shared_ptr<const PageCaller> Find(
      const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) const;
  // Returns the number of valid tickets.
  size_t size() const;

 private:
  SystemRandom random_;
  mutable Mutex mutex_;
  // By the ticket's SHA-256, so that the time of a look-up tells nothing about tickets.
  std::unordered_map<std::string, std::shared_ptr<const PageCaller>> callers_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
