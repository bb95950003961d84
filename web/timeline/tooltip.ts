// SPDX-License-Identifier: Apache-2.0
import * as flag from '../model/span_tile';
import {formatCount, formatDuration, formatMoment, formatValue} from '../model/text_format';
import {Track} from '../model/track_tree';
import {element, replaceChildren} from '../widgets/dom';

import {gapText} from './painter';
import {Stage} from './stage';
import {ChosenSpan, TimelineHost} from './timeline_host';

// What the flags of a span mean, for people.
export function flagTexts(flags: number): string[] {
  const texts: [number, string][] = [
    [flag.kOpen, 'no end was recorded'],
    [flag.kStartLost, 'its beginning was lost'],
    [flag.kInstant, 'instant'],
    [flag.kClippedLeft, 'begins before the loaded stretch'],
    [flag.kClippedRight, 'ends after the loaded stretch'],
    [flag.kDeviceClock, 'device clock'],
    [flag.kNoBound, 'clock bound unknown'],
  ];
  return texts.filter(([bit]) => flags & bit).map(([, text]) => text);
}

// A few lines beside the pointer.
export class Tooltip {
  private readonly element = element('div', {class: 'tooltip', role: 'presentation', hidden: true});

  constructor(private readonly host: TimelineHost, stage: Stage) {
    stage.element.appendChild(this.element);
  }

  hide(): void {
    this.element.hidden = true;
  }

  showSpan(span: ChosenSpan, x: number, y: number): void {
    const {state} = this.host, isMerged = (span.flags & flag.kMerged) !== 0, length = span.to - span.from;
    replaceChildren(
        this.element,
        element(
            'div', {class: 'tooltip-title'},
            isMerged ? `${formatCount(span.count)} events, longest ${span.name}` : span.name),
        element(
            'div', {},
            isMerged ? `together ${formatDuration(length)}; zoom in to see each`
                : span.flags & flag.kInstant ? 'instant'
                                             : formatDuration(length)),
        element(
            'div', {class: 'faint'},
            `at ${formatMoment(span.from)} · ${state.streamLabel(span.stream)} · ${
                state.rowLabel(span.stream, span.row)}`),
        this.boundLine(span),
        ...flagTexts(span.flags & ~flag.kInstant).map(text => element('div', {class: 'faint'}, text)));
    this.place(x, y);
  }

  // Where there is no span: the counter's value, or what is missing here.
  showPlace(track: Track, time: number, counter: {value: number, unit: string}|null, x: number, y: number): void {
    const stream = this.host.state.layout.stream(track.stream);
    const gap = stream?.gaps.find(entry => time >= entry.from && time <= entry.to);
    if (!counter && !gap) return this.hide();
    replaceChildren(
        this.element, counter && element('div', {class: 'tooltip-title'}, formatValue(counter.value, counter.unit)),
        counter && element('div', {class: 'faint'}, `${track.row?.name ?? ''} at ${formatMoment(time)}`),
        gap && element('div', {class: 'tooltip-title'}, gapText(gap)),
        gap && element('div', {class: 'faint'}, gap.reason));
    this.place(x, y);
  }

  // A span shorter than the bound of its clock may as well have been somewhere else.
  private boundLine(span: ChosenSpan): HTMLElement|null {
    const stream = this.host.state.layout.stream(span.stream);
    if (!stream) return null;
    if (stream.ownTime) return element('div', {class: 'faint'}, 'own time: only order and lengths are valid');
    return element(
        'div', {class: 'faint'},
        stream.boundKnown ? `clock bound ±${formatDuration(stream.boundNs)}` : 'clock not aligned');
  }

  private place(x: number, y: number): void {
    this.element.hidden = false;
    const {offsetWidth, offsetHeight} = this.element;
    this.element.style.left = `${Math.max(4, x + 14 + offsetWidth > innerWidth ? x - offsetWidth - 10 : x + 14)}px`;
    this.element.style.top = `${Math.max(4, y + 18 + offsetHeight > innerHeight ? y - offsetHeight - 10 : y + 18)}px`;
  }
}
