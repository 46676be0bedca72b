"use strict";
// What the scripts of all pages begin with. Text is set as text, never as HTML.
const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const result = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in result) result[name] = value;
    else result.setAttribute(name, value);
  }
  result.append(...children);
  return result;
}
