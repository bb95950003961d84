// SPDX-License-Identifier: Apache-2.0
import {ApiClient, Query} from '../api/api_client';
import {safeText} from '../model/safe_text';

const kDefaultAddress = 'https://ui.perfetto.dev';
const kAddressKey = 'neurontrace.perfetto';
const kPingMs = 50, kPingsMax = 1200;
const kBytesMax = 200e6;

// Hands a trace to Perfetto's page: the window is opened within the click, pinged until it answers, and then gets the
// bytes by postMessage. This needs neither CORS nor HTTPS on our side (Perfetto's documentation, "Deep linking").
export class PerfettoHandOver {
  constructor(private readonly api: ApiClient) {}

  // The address of Perfetto's page, which closed networks serve themselves.
  get address(): string {
    try {
      return localStorage.getItem(kAddressKey) || kDefaultAddress;
    } catch {
      return kDefaultAddress;
    }
  }

  set address(text: string) {
    const url = new URL(text);
    if (url.protocol !== 'https:' && url.protocol !== 'http:')
      throw new Error('the address begins with https:// or http://');
    localStorage.setItem(kAddressKey, url.origin + url.pathname.replace(/\/$/, ''));
  }

  // Call it from the click itself, or the browser blocks the window. Throws if that happens, or the export fails.
  async open(captureId: string, query: Query, title: string): Promise<{bytes: number}> {
    const address = this.address, target = window.open(address);
    if (!target) throw new Error('the browser blocked the window; allow windows for this page and try again');
    try {
      const [buffer] =
          await Promise.all([this.read(captureId, query), this.waitUntilReady(target, new URL(address).origin)]);
      target.postMessage(
          {perfetto: {buffer, title: safeText(title, 200), fileName: 'neurontrace.pftrace', keepApiOpen: false}},
          new URL(address).origin);
      return {bytes: buffer.byteLength};
    } catch (error) {
      target.close();
      throw error;
    }
  }

  private async read(captureId: string, query: Query): Promise<ArrayBuffer> {
    const answer = await this.api.exportFile(captureId, {...query, format: 'pftrace'});
    const length = Number(answer.headers.get('content-length') ?? 0);
    if (length > kBytesMax)
      throw new Error(`the window makes a trace of ${
          Math.round(length / 1e6)} MB, and Perfetto takes 200 MB from a page: zoom in or choose fewer ranks`);
    const buffer = await answer.arrayBuffer();
    if (buffer.byteLength > kBytesMax)
      throw new Error(
          'the trace is larger than the 200 MB that Perfetto takes from a page: zoom in or choose fewer ranks');
    return buffer;
  }

  private waitUntilReady(target: Window, origin: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let pings = 0;
      const end = (finish: () => void): void => {
        clearInterval(timer);
        removeEventListener('message', onMessage);
        finish();
      };
      const onMessage = (event: MessageEvent): void => {
        if (event.source === target && event.origin === origin && event.data === 'PONG') end(resolve);
      };
      const timer = setInterval(() => {
        if (target.closed)
          end(() => reject(new Error('its window was closed')));
        else if (++pings > kPingsMax)
          end(() => reject(new Error(
                  `${origin} does not answer; choose another address in the menu if this network is closed`)));
        else
          target.postMessage('PING', origin);
      }, kPingMs);
      addEventListener('message', onMessage);
    });
  }
}
