// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/mutex.h"
#include "lib/web/operator_calls.h"
#include "lib/web/web_server.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {

// Downloads of exports and artifacts by a browser: each streams the replies of one call of the
// aggregator. A browser shows the bytes of a download that it saves, but tells the page nothing, so
// the page names its download and asks for its state here. Any thread.
class ExportDownloads {
 public:
  // Who downloads. Downloads of other users are unknown to it.
  struct Caller {
    std::shared_ptr<OperatorCalls> calls;  // makes and ends the calls
    std::string user;
    bool makes_archives = true;  // formats of several files, which need temporary files
  };
  // `service` must outlive this and its streams.
  explicit ExportDownloads(v1::OperatorService::StubInterface& service);
  ~ExportDownloads();

  // Each answers a request of docs/formats/view_api.md. `id` is the capture of the path or, of the
  // last two, the name that the page gave the download.
  WebReply Export(const Caller& caller, const WebRequest& request, const std::string& id);
  WebReply GetArtifact(const Caller& caller, const WebRequest& request, const std::string& id);
  WebReply GetState(const Caller& caller, const WebRequest& request, const std::string& id);
  WebReply Cancel(const Caller& caller, const WebRequest& request, const std::string& id);

 private:
  // One download; shared with its stream, which lives as long as the browser reads.
  class Download;
  class ExportStream;
  class ArtifactStream;

  // Returns a download of the user and this name, known to GetState unless the name is empty, or
  // nullptr if too many are running or the name is in use.
  std::shared_ptr<Download> Begin(const std::string& user, std::string_view name);
  std::shared_ptr<Download> Find(const std::string& user, std::string_view name);

  v1::OperatorService::StubInterface& service_;
  Mutex mutex_;
  std::list<std::shared_ptr<Download>> downloads_ NT_GUARDED_BY(mutex_);  // the newest is last
};

}  // namespace neurontrace
