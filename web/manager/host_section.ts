// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {describeError} from '../api/api_error';
import {CaptureLayout} from '../model/capture_layout';
import {highest, HostSeries, hostSeries, stepPath} from '../model/host_series';
import {NameTable} from '../model/name_table';
import {SpanTile} from '../model/span_tile';
import {formatBytes, formatCount, formatDuration} from '../model/text_format';
import {TimeBase} from '../model/time_base';
import {button, element, notice, replaceChildren} from '../widgets/dom';

const kHostsStep = 24;
const kWidth = 320, kHeight = 48;

// Processors and memory of each instance over the capture, as small charts.
export class HostSection {
  readonly element = element('section', {class: 'hosts', 'aria-labelledby': 'hosts-title'});
  private readonly body = element('div', {class: 'host-charts'});
  private readonly abort = new AbortController();
  private readonly streams: number[];
  private shown = 0;

  constructor(
      private readonly api: ApiClient, private readonly captureId: string, private readonly base: TimeBase,
      private readonly layout: CaptureLayout) {
    this.streams = layout.streams.filter(stream => stream.kind === 'host').map(stream => stream.number);
    this.element.append(element('h2', {id: 'hosts-title'}, `Hosts (${formatCount(this.streams.length)})`), this.body);
    if (this.streams.length)
      void this.load();
    else
      replaceChildren(
          this.body,
          notice(
              'empty', 'No host was sampled during this capture',
              'Agents sample processors and memory unless they run with --no-host-samples.'));
  }

  close(): void {
    this.abort.abort();
  }

  private async load(): Promise<void> {
    const wait = notice('loading', 'Reading host samples'),
          next = this.streams.slice(this.shown, this.shown + kHostsStep);
    this.body.append(wait);
    try {
      const {layout, base} = this;
      const answer = await this.api.spans(
          this.captureId, {
            streams: next.join(','),
            px: kWidth,
            from: base.absolute(layout.begin),
            to: base.absolute(Math.max(layout.begin + 1, layout.end + 1))
          },
          this.abort.signal);
      const tile = new SpanTile(answer, base, new NameTable());
      wait.remove();
      this.shown += next.length;
      this.show(next, tile);
    } catch (error) {
      wait.remove();
      if (this.abort.signal.aborted) return;
      const {message, hint} = describeError(error);
      const failed = notice('error', `The samples were not read: ${message}`, hint, button('Try again', () => {
                              failed.remove();
                              void this.load();
                            }));
      this.body.append(failed);
    }
  }

  private show(asked: number[], tile: SpanTile): void {
    const hosts = new Map(hostSeries(tile.rows).map(host => [host.stream, host])),
          span = (tile.to - tile.from) / tile.unitNs;
    for (const number of asked) {
      const stream = this.layout.stream(number), host = hosts.get(number);
      const name = this.layout.instances[stream?.instance ?? -1]?.label ?? stream?.label ?? String(number);
      this.body.append(
          host ? chartsOf(name, host, span)
               : element(
                     'figure', {class: 'host'}, element('figcaption', {}, element('strong', {}, name)),
                     element('p', {class: 'faint'}, 'no sample')));
    }
    if (tile.cut) this.body.append(element('p', {class: 'faint'}, tile.cut));
    if (this.shown < this.streams.length) {
      const more = button(
          `Show ${formatCount(Math.min(kHostsStep, this.streams.length - this.shown))} more of ${
              formatCount(this.streams.length)} hosts`,
          () => {
            more.remove();
            void this.load();
          });
      this.body.append(more);
    }
    const length = formatDuration(this.layout.end - this.layout.begin);
    this.element.querySelector('h2')!.title = `Each chart is ${length} wide and goes from 0 to 100 %`;
  }
}

function chartsOf(name: string, host: HostSeries, span: number): HTMLElement {
  const cpu = Math.round(highest(host.cpu)), busiest = Math.round(highest(host.busiest));
  const used = host.usedBytes
      ? `, ${formatBytes(host.usedBytes)}${host.totalBytes ? ` of ${formatBytes(host.totalBytes)}` : ''}`
                                                           : '';
  const processors = host.processors ? ` of ${formatCount(host.processors)} processors` : '';
  return element(
      'figure', {class: 'host'}, element('figcaption', {}, element('strong', {}, name)),
      chart(
          `Processors: up to ${cpu} %${processors}, the busiest one ${busiest} %`,
          [
            ['busiest', stepPath(host.busiest, span, kWidth, kHeight)],
            ['cpu', stepPath(host.cpu, span, kWidth, kHeight)]
          ]),
      chart(
          `Memory: up to ${Math.round(highest(host.memory))} %${used}`,
          [['memory', stepPath(host.memory, span, kWidth, kHeight)]]));
}

function chart(label: string, lines: [string, string][]): HTMLElement {
  const space = 'http://www.w3.org/2000/svg', svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', `0 -1 ${kWidth} ${kHeight + 2}`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', label);
  for (const [style, path] of lines) {
    const line = document.createElementNS(space, 'path');
    line.setAttribute('class', style);
    line.setAttribute('d', path);
    svg.appendChild(line);
  }
  return element('div', {class: 'host-chart'}, svg, element('div', {class: 'faint'}, label));
}
