// SPDX-License-Identifier: Apache-2.0
import {safeText} from '../model/safe_text';

type Child = Node|string|number|null|undefined|false;
type Attributes = Record<string, string|number|boolean|EventListener|undefined>;

// Attributes that people see or hear.
const kTextAttributes = ['title', 'aria-label', 'placeholder'];

// Makes an element. Attributes that begin with "on" are listeners; text becomes text nodes, never markup.
export function element<K extends keyof HTMLElementTagNameMap>(
    tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function')
      made.addEventListener(key.slice(2), value);
    else
      made.setAttribute(key, value === true ? '' : kTextAttributes.includes(key) ? safeText(value) : String(value));
  }
  append(made, ...children);
  return made;
}

export function append(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(safeText(child)));
  }
}

export function replaceChildren(parent: Element, ...children: Child[]): void {
  parent.textContent = '';
  append(parent, ...children);
}

export function button(label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return element('button', {type: 'button', onclick: () => onClick(), ...attributes}, label);
}

// Icons are drawn by the style sheet from SVG paths in the bundle, so that no font or image is fetched.
const kIcons: Record<string, string> = {
  select: 'M3 2l9 5-4 1.2L6 12z',
  pan: 'M7 1v12M1 7h12M7 1L5 3m2-2l2 2M7 13l-2-2m2 2l2-2M1 7l2-2M1 7l2 2m10-2l-2-2m2 2l-2 2',
  zoom: 'M6 2a4 4 0 100 8 4 4 0 000-8zM9 9l4 4M4.5 6h3M6 4.5v3',
  time: 'M2 3v8M12 3v8M2 7h10M4 5L2 7l2 2m6-4l2 2-2 2',
  fit: 'M2 5V2h3M9 2h3v3M12 9v3H9M5 12H2V9',
  pin: 'M5 2h4l-.5 4 2 2h-7l2-2zM7 8v4',
  hide: 'M2 2l10 10M3 7s1.8-3.2 4-3.2S11 7 11 7s-.7 1.3-1.8 2.2M5 9.7C3.8 8.9 3 7 3 7',
  star: 'M7 1.8l1.6 3.4 3.7.4-2.8 2.5.8 3.7L7 9.9l-3.3 1.9.8-3.7L1.7 5.6l3.7-.4z',
  theme: 'M11.5 8.6A5 5 0 015.4 2.5a5 5 0 106.1 6.1z',
  help: 'M5 5.2a2 2 0 113 1.7c-.7.4-1 .8-1 1.6M7 10.8v.2',
  close: 'M3 3l8 8M11 3l-8 8',
  more: 'M3 7h.1M7 7h.1M11 7h.1',
  back: 'M9 2L4 7l5 5',
  up: 'M3 9l4-4 4 4',
  down: 'M3 5l4 4 4-4',
  download: 'M7 2v7M4 6.5L7 9.5l3-3M2.5 12h9',
  search: 'M6 2a4 4 0 100 8 4 4 0 000-8zM9 9l3.5 3.5',
  refresh: 'M11.5 5A5 5 0 102 8M11.5 2v3h-3',
};

export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 14 14');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', kIcons[name] ?? '');
  svg.appendChild(path);
  return svg;
}

export function iconButton(
    name: string, label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = element('button', {
    type: 'button',
    class: 'icon-button',
    title: label,
    'aria-label': label,
    onclick: () => onClick(),
    ...attributes
  });
  made.appendChild(icon(name));
  return made;
}

// What a page or panel shows instead of its content: why it is empty, and what to do.
export function notice(kind: 'empty'|'loading'|'error', title: string, hint = '', ...actions: Node[]): HTMLElement {
  return element(
      'div', {class: `notice ${kind}`, role: kind === 'error' ? 'alert' : 'status'},
      element(
          'div', {class: 'notice-title'},
          kind === 'loading' && element('span', {class: 'spinner', 'aria-hidden': 'true'}), capital(title)),
      hint && element('div', {class: 'notice-hint'}, hint),
      actions.length > 0 && element('div', {class: 'actions'}, ...actions));
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

// Hands a file to the browser's downloads.
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = element('a', {href: address, download: name});
  document.body.appendChild(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
