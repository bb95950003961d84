// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/web/export_downloads.h"
#include "lib/web/operator_calls.h"
#include "lib/web/web_assets.h"
#include "lib/web/web_server.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {

// Serves the page and its API (docs/formats/view_api.md) by calling the aggregator's operator
// service: roles, limits and the audit log are the aggregator's own, and everything here happens
// with the credentials of `service`. Any thread.
//
// Whoever has the session's token may use these credentials, so the token is in the address that
// the operator opens, and then in a cookie that scripts cannot read. Requests for other host names
// (DNS rebinding) and changes that another site's page asks for are refused.
class OperatorGateway final : public WebHandler {
 public:
  struct Options {
    std::string token;               // of the session; at least 128 bits, as hexadecimal digits
    std::vector<std::string> hosts;  // accepted besides the names of the loopback interface
    std::string user;                // whose credentials the calls have, for people
  };
  // `service` and `assets` must outlive this.
  OperatorGateway(v1::OperatorService::StubInterface& service, const WebAssets& assets,
                  Options options);
  ~OperatorGateway() override;

  // Ends all calls, so that a server with this handler can end.
  void Stop();

  WebReply Handle(const WebRequest& request) override;

 private:
  struct Route;
  class CaptureEvents;

  static const std::vector<Route>& Routes();

  // Returns the refusal of a request that must not be answered, or nullopt.
  std::optional<WebReply> RefuseForeign(const WebRequest& request) const;
  // Returns whether the request's cookie has the session's token.
  bool HasSession(const WebRequest& request) const;
  // Check the token of an address or of a body, and set the cookie.
  WebReply SignIn(const WebRequest& request) const;
  WebReply SignInByBody(const WebRequest& request);
  // Returns the value of Set-Cookie.
  std::string SessionCookie() const;
  // Answer requests for the page's files, and for the API below /api/v1/.
  WebReply Page(const WebRequest& request) const;
  WebReply Api(const WebRequest& request);

  // One function for each route. `id` is the capture of the path, or empty.
  WebReply GetSession(const WebRequest& request, const std::string& id);
  WebReply GetStatus(const WebRequest& request, const std::string& id);
  WebReply ListCaptures(const WebRequest& request, const std::string& id);
  WebReply GetCapture(const WebRequest& request, const std::string& id);
  WebReply GetCertificate(const WebRequest& request, const std::string& id);
  WebReply StartCapture(const WebRequest& request, const std::string& id);
  WebReply StopCapture(const WebRequest& request, const std::string& id);
  WebReply UpdateCapture(const WebRequest& request, const std::string& id);
  WebReply DeleteCapture(const WebRequest& request, const std::string& id);
  WebReply WatchCapture(const WebRequest& request, const std::string& id);
  WebReply ListAgents(const WebRequest& request, const std::string& id);
  WebReply ListWorkers(const WebRequest& request, const std::string& id);
  WebReply ListClocks(const WebRequest& request, const std::string& id);
  WebReply ListTriggers(const WebRequest& request, const std::string& id);
  WebReply ListStandingExports(const WebRequest& request, const std::string& id);
  WebReply ListArtifacts(const WebRequest& request, const std::string& id);
  WebReply Export(const WebRequest& request, const std::string& id);
  WebReply GetArtifact(const WebRequest& request, const std::string& id);
  // These have the name of a download in place of a capture.
  WebReply GetDownload(const WebRequest& request, const std::string& id);
  WebReply CancelDownload(const WebRequest& request, const std::string& id);
  // `what` is the kind of answer, such as "spans"; see ViewRequest in operator_service.proto.
  WebReply View(std::string_view what, const WebRequest& request, const std::string& id);

  // Waits for the result of a preview that was started.
  absl::Status AwaitPreview(v1::Capture& capture);

  v1::OperatorService::StubInterface& service_;
  const WebAssets& assets_;
  const Options options_;
  const std::string cookie_name_;  // of the session
  // Shared with streams, which outlive Handle.
  const std::shared_ptr<OperatorCalls> calls_;
  // Pages that follow a running capture. Shared with their streams.
  const std::shared_ptr<std::atomic<int>> watches_;
  ExportDownloads downloads_;
};

}  // namespace neurontrace
