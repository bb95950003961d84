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
#include "absl/status/statusor.h"
#include "lib/trace/web_limits.h"
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
//
// The aggregator has sessions of its own: it makes a gateway for each request by For, and asks it
// by Answer.
class OperatorGateway final : public WebHandler {
 public:
  struct Options {
    std::string token;               // of the session; at least 128 bits, as hexadecimal digits
    std::vector<std::string> hosts;  // accepted besides the names of the loopback interface
    std::string user;                // whose credentials the calls have, for people
    std::string role = {};           // "viewer", "operator" or "admin"; empty: not known here
    bool has_session = false;        // the page may offer to end the session
    int watches_max = limits::kWebWatchesMax;  // pages that follow a running capture
    // Exports of several files become archives, which need room for temporary files.
    bool makes_archives = true;
  };
  // `service` and `assets` must outlive this.
  OperatorGateway(v1::OperatorService::StubInterface& service, const WebAssets& assets,
                  Options options);
  ~OperatorGateway() override;

  // Ends all calls, so that a server with this handler can end.
  void Stop();

  WebReply Handle(const WebRequest& request) override;

  // What For needs to know of a caller.
  struct User {
    std::string name;
    std::string role;
    bool has_session = false;  // as in Options
  };
  // Returns a gateway whose calls are made by `caller`, and whose `session` describes `user`. Its
  // limits are those of this gateway, and Stop of this one ends its calls. `caller` lives until the
  // last of its calls has ended. The service and the assets must outlive both.
  std::unique_ptr<OperatorGateway> For(std::shared_ptr<const WebCaller> caller, User user) const;
  // Answers a request whose sender is known: calls of the API, without the checks of Handle.
  WebReply Answer(const WebRequest& request) { return Api(request); }
  // Answers a request for a file of the page, which anybody may read.
  WebReply Page(const WebRequest& request) const;

  // Return the refusal of a request that must not be answered, or nullopt: one with a foreign host
  // name, which is none of `hosts` nor one of the loopback interface (`advice` says how to allow
  // it), and a change that another site's page may have asked for. Pure.
  static std::optional<WebReply> RefuseForeignHost(const WebRequest& request,
                                                   const std::vector<std::string>& hosts,
                                                   std::string_view advice);
  static std::optional<WebReply> RefuseForeignChange(const WebRequest& request);
  // Returns the member `token` of a body in JSON. Fails with INVALID_ARGUMENT. Pure.
  static absl::StatusOr<std::string> TokenOfBody(const std::string& body);
  // Returns the path and the query of a request without its parameter `token`, as an address of
  // this server. Pure.
  static std::string AddressWithoutToken(const WebRequest& request);
  // Adds the headers that confine the page in the browser.
  static void AddSecurityHeaders(WebReply& reply);

 private:
  struct Route;
  class CaptureEvents;

  // For For.
  OperatorGateway(const OperatorGateway& other, Options options,
                  std::shared_ptr<OperatorCalls> calls);

  static const std::vector<Route>& Routes();

  // Returns whether the request's cookie has the session's token.
  bool HasSession(const WebRequest& request) const;
  // Check the token of an address or of a body, and set the cookie.
  WebReply SignIn(const WebRequest& request) const;
  WebReply SignInByBody(const WebRequest& request);
  // Returns the value of Set-Cookie.
  std::string SessionCookie() const;
  // Answers requests for the API below /api/v1/.
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
  // Which ranks of the capture are slow or hung, and why; without a capture, of the watch.
  WebReply Why(const WebRequest& request, const std::string& id);
  // `what` is the kind of answer, such as "spans"; see ViewRequest in operator_service.proto.
  WebReply View(std::string_view what, const WebRequest& request, const std::string& id);

  ExportDownloads::Caller DownloadCaller() const {
    return {.calls = calls_, .user = options_.user, .makes_archives = options_.makes_archives};
  }
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
  // The downloads of all callers.
  const std::shared_ptr<ExportDownloads> downloads_;
};

}  // namespace neurontrace
