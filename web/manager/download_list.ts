// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {describeError} from '../api/api_error';
import {DownloadState} from '../api/api_types';
import {safeText, sentences} from '../model/safe_text';
import {formatBytes} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {button, element, iconButton, replaceChildren} from '../widgets/dom';

const kPollMs = 500;
// How often the server may not know a download yet, whose request is on its way.
const kUnknownMax = 20;

interface Entry {
  name: string;
  label: string;
  line: HTMLElement;
  unknown: number;
}

// Downloads that were started here, newest first. The browser saves the bytes by itself, so a file may be larger than
// the page's memory; the server tells how far it is.
export class DownloadList {
  readonly element = element('div', {class: 'downloads', role: 'status', 'aria-label': 'Downloads'});
  private readonly running = new Set<Entry>();
  private timer = 0;

  constructor(private readonly api: ApiClient) {}

  close(): void {
    clearTimeout(this.timer);
    this.running.clear();
  }

  // `address` makes the address of a download with a name.
  start(label: string, address: (name: string) => string): void {
    const name =
        [...crypto.getRandomValues(new Uint8Array(12))].map(byte => byte.toString(16).padStart(2, '0')).join('');
    const entry: Entry = {name, label, line: element('div', {class: 'download'}), unknown: 0};
    replaceChildren(entry.line, element('span', {}, `${label} starts`));
    this.element.prepend(entry.line);
    this.running.add(entry);
    // With the attribute an error is a failed download, and the page stays.
    const link = element('a', {href: address(name), download: ''});
    document.body.appendChild(link);
    link.click();
    link.remove();
    this.schedule();
  }

  private schedule(): void {
    clearTimeout(this.timer);
    if (this.running.size > 0) this.timer = window.setTimeout(() => void this.poll(), kPollMs);
  }

  private async poll(): Promise<void> {
    await Promise.all([...this.running].map(entry => this.refresh(entry)));
    this.schedule();
  }

  private async refresh(entry: Entry): Promise<void> {
    try {
      const state = await this.api.download(entry.name);
      if (!this.running.has(entry)) return;
      if (state.state === 'unknown') {
        if (++entry.unknown < kUnknownMax) return;
        this.running.delete(entry);
        return this.end(
            entry, 'bad', sentences(`${entry.label} did not start`, 'allow downloads for this page, and try again'));
      }
      if (state.state !== 'running') this.running.delete(entry);
      this.show(entry, state);
    } catch (error) {
      this.running.delete(entry);
      const {message, hint} = describeError(error);
      this.end(entry, 'bad', sentences(`the progress of ${entry.label} is unknown: ${message}`, hint));
    }
  }

  private show(entry: Entry, state: DownloadState): void {
    const bytes = parseCount(state.bytes), file = safeText(state.file || entry.label, 200);
    if (state.state === 'failed') {
      const {message, hint} = state.error ?? {message: 'the server gave no reason', hint: ''};
      return this.end(entry, 'bad', sentences(`${file} failed: ${safeText(message, 1000)}`, safeText(hint ?? '', 500)));
    }
    if (state.state === 'cancelled') return this.end(entry, 'faint', `${file} was cancelled.`);
    if (state.state === 'done') {
      const lacks = state.incomplete ? state.verdict : '';
      return this.end(
          entry, lacks ? 'warn' : 'good',
          sentences(`${file} is saved: ${formatBytes(bytes)}`, lacks, ...state.warnings, ...state.notes));
    }
    const read = parseCount(state.chunks_read), total = parseCount(state.chunks_total),
          whole = parseCount(state.bytes_total);
    const share = total ? read / total : whole ? bytes / whole : null;
    const bar = element('progress', {max: 1, 'aria-label': `Progress of ${file}`});
    if (share !== null) bar.value = Math.min(1, share);
    replaceChildren(
        entry.line, element('span', {class: 'download-name'}, file), bar,
        element(
            'span', {class: 'faint'},
            `${share === null ? '' : `${Math.floor(share * 100)} %, `}${formatBytes(bytes)}${
                whole ? ` of ${formatBytes(whole)}` : ''}`),
        button('Cancel', () => void this.cancel(entry)));
  }

  private end(entry: Entry, style: string, text: string): void {
    replaceChildren(
        entry.line, element('span', {class: style}, text),
        iconButton('close', 'Remove from the list', () => entry.line.remove()));
  }

  private async cancel(entry: Entry): Promise<void> {
    try {
      await this.api.cancelDownload(entry.name);
    } catch (error) {
      const {message, hint} = describeError(error);
      this.end(entry, 'bad', sentences(`${entry.label} was not cancelled: ${message}`, hint));
    }
    this.schedule();
  }
}
