// SPDX-License-Identifier: Apache-2.0
// What a page lacks for people who use a keyboard, a screen reader, or weak eyes, as a list of sentences. The rules are those
// of WCAG 2.1 AA that a program can check: names (4.1.2), roles and their relations (1.3.1), contrast of text (1.4.3).
const found = [];
const isVisible = node => {
  if (!node.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) return false;
  const box = node.getBoundingClientRect();
  return box.width > 0 && box.height > 0;
};
const nameOf = node => {
  const by = (node.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id)?.textContent ?? '').join(' ');
  const labels = node.labels ? [...node.labels].map(label => label.textContent).join(' ') : '';
  return (by.trim() || node.getAttribute('aria-label') || labels.trim() || node.textContent.trim() || node.title || '').trim();
};
const describe = node => `<${node.tagName.toLowerCase()} class="${node.getAttribute('class') || ''}"> ${(node.textContent || '').trim().slice(0, 40)}`;

for (const node of document.querySelectorAll('button, a[href], input, select, textarea, [tabindex], [role=tree], [role=tablist], [role=group], dialog')) {
  if (isVisible(node) && node.getAttribute('aria-hidden') !== 'true' && !nameOf(node)) found.push(`no name: ${describe(node)}`);
}

const kParents = {tab: 'tablist', treeitem: 'tree', menuitem: 'menu', option: 'listbox', row: 'table'};
const kStates = {tab: ['aria-selected'], treeitem: ['aria-level'], separator: ['aria-valuenow']};
for (const node of document.querySelectorAll('[role]')) {
  const role = node.getAttribute('role'), parent = kParents[role];
  if (parent && !node.closest(`[role=${parent}]`)) found.push(`${role} outside of a ${parent}: ${describe(node)}`);
  for (const state of isVisible(node) ? kStates[role] ?? [] : []) if (!node.hasAttribute(state)) found.push(`${role} without ${state}: ${describe(node)}`);
}
for (const attribute of ['aria-controls', 'aria-labelledby', 'aria-activedescendant', 'for']) {
  for (const node of document.querySelectorAll(`[${attribute}]`)) {
    if (!document.getElementById(node.getAttribute(attribute))) found.push(`${attribute} names nothing: ${describe(node)}`);
  }
}
const ids = [...document.querySelectorAll('[id]')].map(node => node.id);
for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push(`two elements have the id ${id}`);
for (const node of document.querySelectorAll('[aria-hidden=true] button, [aria-hidden=true] [tabindex="0"]')) found.push(`focusable but hidden from screen readers: ${describe(node)}`);
for (const node of document.querySelectorAll('th')) if (!node.scope) found.push(`a heading of a table without scope: ${describe(node)}`);
const headings = [...document.querySelectorAll('h1')].filter(isVisible).length;
if (headings !== 1) found.push(`${headings} headings of level 1`);
if (!document.documentElement.lang) found.push('the page has no language');
if (!document.title) found.push('the page has no title');

for (const node of document.querySelectorAll('body *')) {
  const style = getComputedStyle(node), scrolls = /auto|scroll/.test(style.overflowY) && node.scrollHeight > node.clientHeight + 1;
  if (!scrolls || !isVisible(node) || node.getAttribute('aria-hidden') === 'true') continue;
  if (node.tabIndex < 0 && !node.querySelector('button, a[href], input, select, [tabindex="0"]')) found.push(`scrolls, but not by the keyboard: ${describe(node)}`);
}

// Contrast, with the colours behind a text blended down to the first opaque one.
const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = colour => {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const behind = node => {
  const colour = rgba(getComputedStyle(node).backgroundColor);
  if (colour[3] === 1) return colour;
  const below = node.parentElement ? behind(node.parentElement) : [255, 255, 255, 1];
  return over(colour, below);
};
const luminance = colour => {
  const [r, g, b] = colour.map(value => value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const seen = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = walker.nextNode(); text; text = walker.nextNode()) {
  const node = text.parentElement;
  if (!text.data.trim() || !isVisible(node) || node.closest(':disabled, script, noscript')) continue;
  const style = getComputedStyle(node), ground = behind(node), ink = over(rgba(style.color), ground);
  const [light, dark] = [luminance(ground), luminance(ink)].sort((a, b) => b - a), contrast = (light + 0.05) / (dark + 0.05);
  const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const key = `${style.color} on ${ground.slice(0, 3).map(Math.round)}`;
  if (contrast < (isLarge ? 3 : 4.5) && !seen.has(key)) found.push(`contrast ${contrast.toFixed(2)}, ${key}: ${describe(node)}`);
  if (contrast < 4.5) seen.add(key);
}
return found;
