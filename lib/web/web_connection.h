// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/web/web_tls.h"

namespace neurontrace {

struct WebTls::Context {
  boost::asio::ssl::context ssl{boost::asio::ssl::context::tls_server};
};

// A connection of a browser: TCP with time limits, below TLS or alone. Has the operations that
// Boost.Beast and Boost.Asio need of a stream. Used on the socket's executor only.
class WebConnection {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  // `tls` null: plain text.
  WebConnection(boost::asio::ip::tcp::socket socket, std::shared_ptr<const WebTls> tls);
  WebConnection(const WebConnection&) = delete;
  WebConnection& operator=(const WebConnection&) = delete;

  executor_type get_executor() { return tcp().get_executor(); }
  bool has_tls() const { return tls_.has_value(); }
  // The TCP connection, whose time limit applies to TLS as well.
  boost::beast::tcp_stream& tcp() { return tls_ ? tls_->next_layer() : *plain_; }

  // Calls `handler` with an error_code. Requires TLS.
  template <typename Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  // Tells the client that nothing was cut off, and calls `handler` with an error_code. Requires
  // TLS.
  template <typename Handler>
  void async_shutdown(Handler&& handler) {
    tls_->async_shutdown(std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      plain_->async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      plain_->async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

  // Returns the client's verified certificate in PEM, or "". Valid after the handshake.
  std::string PeerCertificate();

 private:
  const std::shared_ptr<const WebTls> files_;
  // One of the two.
  std::optional<boost::beast::tcp_stream> plain_;
  std::optional<boost::beast::ssl_stream<boost::beast::tcp_stream>> tls_;
};

}  // namespace neurontrace
