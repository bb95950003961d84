// SPDX-License-Identifier: Apache-2.0
#include "aggregator/http/http_client.h"

#include <curl/curl.h>
#include <strings.h>

#include <filesystem>

#include "lib/base/status.h"
#include "lib/trace/export_limits.h"

namespace neurontrace {
namespace {

// A server that accepted the connection but sends less than a byte per second for this long has
// failed. The limit of the whole exchange alone would be too long for small replies.
constexpr long kStallSeconds = 20;

struct ListEnd {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListEnd>;

// Filled by libcurl's callbacks while the reply is received.
struct Receiver {
  HttpReply reply;
  size_t bytes_max = 0;
  bool is_too_large = false;
};

// A callback that returns less than it was given makes libcurl end the transfer with
// CURLE_WRITE_ERROR. That code has other causes as well, so is_too_large records this one.
size_t TakeBody(char* bytes, size_t one, size_t size, void* to) {
  auto& receiver = *static_cast<Receiver*>(to);
  if (receiver.reply.body.size() + one * size > receiver.bytes_max) {
    receiver.is_too_large = true;
    return 0;
  }
  receiver.reply.body.append(bytes, one * size);
  return one * size;
}

// Further lines are dropped, not refused: no caller needs more than a few headers. libcurl itself
// refuses headers of more than 300 KiB.
size_t OnHeader(char* bytes, size_t one, size_t size, void* to) {
  auto& lines = static_cast<Receiver*>(to)->reply.header_lines;
  if (lines.size() < limits::kHttpHeaderLinesMax) lines.emplace_back(bytes, one * size);
  return one * size;
}

// On failure curl_slist_append leaves the list as it was, and its owner keeps it.
bool AddHeader(const std::string& line, HeaderList& headers) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return false;
  static_cast<void>(headers.release());  // it is the beginning of the longer one
  headers.reset(longer);
  return true;
}

// CURLOPT_NOBODY is the only way to send HEAD: with CURLOPT_CUSTOMREQUEST libcurl would wait for
// the body that Content-Length announces. A body is set even if it is empty, as libcurl would read
// it from its read callback otherwise; POSTFIELDS copies nothing.
void SetMethod(CURL* curl, const HttpRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    return;
  }
  if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void SetTls(CURL* curl, const std::string& authorities) {
  const std::string file = authorities.empty() ? MachineAuthorities() : authorities;
  if (!file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, file.c_str());
  // Only the named authorities are trusted, not those of the machine's directory in addition.
  if (!authorities.empty()) curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
}

// Returns https://HOST:PORT of a URL, without its path, which can contain secrets.
std::string_view ServerOf(std::string_view url) {
  const size_t host = url.find("://");
  return url.substr(0, host == std::string_view::npos ? host : url.find_first_of("/?", host + 3));
}

}  // namespace

struct HttpClient::Handle {
  Handle() {
    // Once per process: the initialisation of a static is guarded against other threads, while
    // curl_global_init is not in every version of libcurl.
    static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (initialized == CURLE_OK) curl = curl_easy_init();
  }
  ~Handle() { curl_easy_cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  CURL* curl = nullptr;
};

HttpClient::HttpClient() : handle_(std::make_unique<Handle>()) {}
HttpClient::~HttpClient() = default;

absl::StatusOr<HttpReply> HttpClient::Send(const HttpRequest& request) {
  CURL* const curl = handle_->curl;
  if (curl == nullptr) return Internal("libcurl cannot start");
  curl_easy_reset(curl);  // keeps the connection
  HeaderList headers;
  for (const std::string& line : request.headers) {
    if (!AddHeader(line, headers)) return Internal("libcurl cannot store a header");
  }
  Receiver receiver{.bytes_max = request.reply_bytes_max};
  std::string signing;
  char error[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  // URLs come from configuration and credentials endpoints: file:// and other schemes are refused.
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  // Without this libcurl removes "." and ".." segments, and the object key would not be the one
  // that the caller named.
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  // Signals for timeouts are unsafe in a process with several threads.
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  if (!request.through_proxy) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(request.connect_time.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.time.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  if (request.signing) {
    signing = fmt::format("aws:amz:{}:{}", request.signing->region, request.signing->service);
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, signing.c_str());
    curl_easy_setopt(curl, CURLOPT_USERNAME, request.signing->key_id.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, request.signing->secret.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(error));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  SetMethod(curl, request);
  SetTls(curl, request.authorities);
  const CURLcode code = curl_easy_perform(curl);
  // Checked before `code`, which is CURLE_WRITE_ERROR then and would be reported as UNAVAILABLE.
  if (receiver.is_too_large) {
    return MakeStatus(absl::StatusCode::kOutOfRange, "{}: the reply has more than {} bytes",
                      ServerOf(request.url), request.reply_bytes_max);
  }
  if (code != CURLE_OK) {
    // Problems of trust need an operator and do not pass with time, unlike all others.
    const bool is_of_trust = code == CURLE_PEER_FAILED_VERIFICATION ||
                             code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR;
    return MakeStatus(
        is_of_trust ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable,
        "{}: {}", ServerOf(request.url),
        error[0] != '\0' ? static_cast<const char*>(error) : curl_easy_strerror(code));
  }
  long status = 0;
  curl_off_t length = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  receiver.reply.status = static_cast<int>(status);
  receiver.reply.content_bytes = length > 0 ? static_cast<uint64_t>(length) : 0;
  return std::move(receiver.reply);
}

std::string_view HttpReply::Header(std::string_view name) const {
  constexpr std::string_view kBlanks = " \t\r\n";
  for (std::string_view line : header_lines) {
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        strncasecmp(line.data(), name.data(), name.size()) != 0) {
      continue;
    }
    line.remove_prefix(name.size() + 1);
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return {};
    return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
  }
  return {};
}

std::string UrlEscaped(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    if (is_plain || (c == '/' && keep_slashes)) {
      escaped += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

std::string MachineAuthorities(const std::string& root) {
  for (const char* place :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    std::error_code none;
    std::string path = root + place;
    if (std::filesystem::is_regular_file(path, none)) return path;
  }
  return "";
}

}  // namespace neurontrace
