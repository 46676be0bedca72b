-- Makes the pages of the book's site in the folder $SITE. apps/book/site/make runs this inside pandoc, which makes HTML
-- with MathML of Markdown. Each text becomes a page, and so does each source that a page names or includes.
local said = {en = {contents = 'Contents', search = 'Search', twin = '中文', trace = 'A step, step by step', page = 'trace.html', project = 'Folders'},
              zh = {contents = '目录', search = '搜索', twin = 'English', trace = '逐步看一个训练步', page = 'trace.zh.html', project = '各个文件夹'}}
local glossary, language_of = 'apps/book/glossary.md', {h = 'cpp', cpp = 'cpp', js = 'javascript', css = 'css', lua = 'lua'}
-- Words of the glossary that have an everyday meaning, too, are linked only in the chapter that explains them.
local everyday = ' block chunk draw edge fold forward backward generator 生成器 graph head jump key label lane limit mask ' ..
  '掩码 page pass proof register score source stack step target thread unit value variable version view window weight 早停 确定性 变量 次梯度 片段 起始 收集 验证 '
local texts, sources, made, parts = {}, {}, {}, {}  -- by path: Markdown; language; its folder is there; all its Markdown
local starters, tasks, pages = {}, {}, {}  -- an exercise's path, by number; its task; by a path, or a name of one source
local terms, places, tips = {}, {}, {}  -- the glossary by word; the text that explains an entry; what it says
local book, rest, folders = pandoc.List{}, pandoc.List{}, pandoc.List{}  -- in order; what is behind the chapters
local twins, wanted, labels, index = {}, {}, {}, ''  -- in the other language; named; pictures' words (N: any number)
local path, folder, root, chapter, lang, seen, bold, quoted  -- of the page that is being made
local function read(name) return assert(io.open(name, 'rb')):read('a') end
local function write(name, text) io.open(os.getenv('SITE') .. '/' .. name, 'wb'):write(text):close() end
local function plain(html) return (html:gsub('<annotation.-</annotation>', ''):gsub('<[^>]*>', ''):gsub('%s+', ' ')
    :gsub('&#?(%w+);', {lt = '<', gt = '>', quot = '"', amp = '&', ['39'] = "'", ['8288'] = ''})) end
local function link(to, html) return '<a href="' .. to .. '">' .. html .. '</a>' end
local function title(name) return ((texts[name] and texts[name]:match('^# ([^\n]+)') or name):gsub('`', '')) end
local function add_to_index(to, page, section, text)
  index = index .. ('[%q,%q,%q,%q],\n'):format(to, plain(page), plain(section), plain(text))
end
local function address(name) return texts[name] and name:gsub('README', 'index'):gsub('md$', 'html') or name .. '.html' end
local function href(name)
  if not texts[name] and not wanted[name] then wanted[name], wanted[#wanted + 1] = true, name end
  return root .. address(name)
end
local function normal(name)
  local shorter, count = name:gsub('[^/]+/%.%./', '', 1)
  return count == 0 and (name:gsub('/$', '')) or normal(shorter)
end
-- The page that inline code names: by a path from this folder, the root or apps, or by a name that only one file has.
local function named(code)
  if code:match('^apps/run trace') then return root .. said[lang].page end
  local name = starters[code:match('^apps/run exercise (%S+)$')] or code:match('^apps/run (book/%S+%.cpp)$') or code
  for _, from in ipairs(name:match('[./]') and {folder, '', 'apps/', 'tests/'} or {folder, ''}) do
    local to = pages[normal(from .. name)]
    if to and to ~= path then return href(to) end
  end
end
local function entry_of(word)  -- also in the plural
  for _, ending in ipairs{'', 's', 'es'} do
    for _, entry in ipairs(terms[word:lower():gsub('%s', ' '):gsub(ending .. '$', '')] or {}) do
      if entry.chapter == chapter or not entry.only_there then return entry end
    end
  end
end
-- What may be a word, the longest first: up to three words of letters, or nine Chinese characters. Where words begin.
local shapes, starts = {en = {}, zh = {}}, {en = '%f[%w]', zh = '[^\128-\191]'}
for n = 9, 2, -1 do table.insert(shapes.zh, '^' .. ('[\228-\233][\128-\191][\128-\191]'):rep(n)) end
for n = 2, 0, -1 do table.insert(shapes.en, '^%f[%w]' .. ('[%w-]+%s'):rep(n) .. '[%w-]+') end
-- Links each word where a section first has it. Where its chapter explains it, if possible in bold, it gets an address.
local function link_words(text, is_bold)
  local out, i = '', 1
  while i <= #text do
    local from = i
    for _, shape in ipairs(shapes[lang]) do
      local word = text:match(shape, i)
      local entry = word and not text:find('^warm%-up,%s$', i) and not (quoted and word:find('value')) and entry_of(word)
      local here = entry and entry.chapter == chapter and bold[entry] == is_bold and not places[lang .. entry.id]
      if entry and (here or not seen[entry]) then
        seen[entry], places[lang .. entry.id], i = true, places[lang .. entry.id] or here and path, i + #word
        out = out .. ('<a class="term"%s href="%s#%s" title="%s">%s</a>'):format(here and ' id="word-' .. entry.id .. '"' or '',
          href(lang == 'zh' and twins[glossary] or glossary), entry.id, tips[entry.id][lang], word)
      elseif lang == 'zh' and word and terms[word] then  -- no part of it is a word: there is no 生成 in 生成器
        out, i = out .. word, i + #word
      end
      if i > from then break end
    end
    if i == from then
      i = text:find(starts[lang], i + 1) or #text + 1
      out = out .. text:sub(from, i - 1)
    end
  end
  return out
end
-- Where a line ends in Chinese there is no space, nor behind a full stop as wide as a letter.
local function unbroken(text) return (text:gsub('([\128-\255])%s([\227-\239])', '%1%2'):gsub('([\227\239][\128\188][\128-\159])%s', '%1')) end
local function link_section(html)
  local last, quiet = '', false
  return (html:gsub('([^<]*)(<[^>]*>)', function(text, tag)
    if lang == 'zh' and not quiet then text = unbroken(text) end
    local to = last == '<code>' and not quiet and named(plain(text))
    if to then text = link(to, text)
    elseif last ~= '<code>' and not quiet and not path:match('^apps/book/glossary') then text = link_words(text, last == '<strong>' or nil) end
    if not quiet then quiet = tag:match('^<(a)%s') or tag:match('^<(pre)') or tag:match('^<(math)')
    elseif tag == '</' .. quiet .. '>' then quiet = false end
    last, quoted = tag, tag == '<blockquote>' or quoted and tag ~= '</blockquote>'
    return text .. tag
  end))
end
local function show_picture(to, alt)
  local drawn, file = read(normal(folder .. to) .. '.svg'), to .. (lang == 'zh' and '.zh.svg' or '.svg')
  if lang == 'zh' then write(normal(folder .. file), (drawn:gsub('<title>[^<]*', '<title>' .. alt)
    :gsub('>([^<]+)</text>', function(label)
      local form, number = labels[label:gsub('%d+', 'N')], label:gmatch('%d+')
      return '>' .. (labels[label] or form and form:gsub('N', function() return number() end) or label) .. '</text>'
    end))) end
  local class = tonumber(drawn:match('width="(%d+)"')) > 600 and '" class="broad' or ''
  return link(file, '<img src="' .. file .. class .. '" alt="' .. alt .. '">')
end
local function enter(name)
  path, folder, chapter = name, name:match('^(.*/)') or '', name:match('^apps/book/ch(%d+)/')
  lang, root, bold = name:match('%.(zh)%.md$') or 'en', ('../'):rep(select(2, name:gsub('/', ''))), {}
  made[folder] = made[folder] or os.execute('mkdir -p "$SITE/' .. folder .. '"')
end
local function leave(body, sections)
  local function to(name, before, after)
    name = name and lang == 'zh' and twins[name] or name
    return name and link(href(name), before .. title(name) .. after) or '<span></span>', name == path and sections
  end
  local values = {title = title(path), lang = lang, root = root, body = body, turn = '', book = '', folders = '',
                  home = address(lang == 'zh' and twins['README.md'] or 'README.md'),
                  switch = twins[path] and link(href(twins[path]), said[lang].twin) or ''}
  for key, names in pairs{book = book, folders = folders} do
    for i, name in ipairs(names) do
      local item, here = to(name, '', '')
      values[key] = values[key] .. (here and '<li class="here">' .. item .. here or '<li>' .. item) .. '</li>\n'
      if here then values.turn = to(names[i - 1], '← ', '') .. to(names[i + 1], '', ' →') end
    end
  end
  write(address(path), (read('apps/book/site/page.html'):gsub('%${(%w+)}', setmetatable(values, {__index = said[lang]}))))
end
local function make_text(name)
  local text = texts[name]:gsub('^(#[^\n]*\n)%[[^%]\n]+%]%([%w.]+%.md%)\n', '%1')  -- the header leads to its twin
    :gsub('%$%$.-%$%$', function(math) return math:gsub('\n', ' ') end)  -- where no line begins with a minus, a list
    :gsub('(\n *)<details><summary>(.-)</summary>(.-)</details>', '%1<details><summary>%2</summary>\n%1%3\n%1</details>')
  local body, out, sections = pandoc.write(pandoc.read(text, 'gfm+tex_math_dollars'), 'html', PANDOC_WRITER_OPTIONS)
    :gsub('<pre%s+class="', '%0language-')
    :gsub('href="([^"#:]+)(#?[^":]*)"', function(to, anchor)
      local word = anchor:match('^#word%-(.*)')  -- which has its place in one part of its chapter
      local place = word and places[lang .. word]
      return 'href="' .. href(place or normal(folder .. to)) .. (word and not place and '' or anchor) .. '"'
    end):gsub('<strong>(%d+%.%d+)%s([^<]*)</strong>', function(number, rest)
      tasks[starters[number] or ''] = tasks[starters[number]] or address(path) .. '#exercise-' .. number .. ' ' .. number .. ' ' .. rest
      return starters[number] and ('<strong id="exercise-%s">%s %s</strong> <span class="command"><code>apps/run ' ..
        'exercise %s</code></span>'):format(number, number, rest, number)
    end):gsub('<img%s+src="([^"]+)%.svg"%s+alt="([^"]*)"[^>]*>', show_picture)
    :gsub('<math.-</math>', function(math)  -- brackets grow only if TeX says so; what is long scrolls on a narrow screen
      local class = math:match('display="block"') and 'wide' or #math:match('tex">(.*)</ann') > 40 and 'long' or 'formula'
      if not (math:match('\\left') or math:match('matrix')) then math = math:gsub('stretchy="true"', 'stretchy="false"') end
      return '<span class="' .. class .. '">' .. math .. '</span>'
    end):gsub('(</math>)(</span>)([,.;:?!)])', '%1&#8288;%3%2'):gsub('(</math>)(</span>)([\227\239]..)%s?', '%1&#8288;%3%2')
    :gsub('<h%d id', '\1%0'), '', ''
  for word in parts[folder .. lang]:gmatch('%*%*([^*%s][^*]*)%*%*') do bold[entry_of(word) or 0] = true end
  for head, level, id, heading, rest in body:gmatch('\1(<h(%d) id="([^"]*)">(.-)</h%d>)([^\1]*)') do
    local anchor = level > '1' and '#' .. id or ''
    add_to_index(address(path) .. anchor, title(path), level > '1' and heading or '', rest)
    if level < '3' then seen = {} end
    if level == '2' then sections = sections .. '<li><a href="' .. anchor .. '">' .. heading .. '</a></li>' end
    out = out .. head .. link_section(rest)
  end
  leave(out, '<ul>' .. sections .. '</ul>')
end
local function make_source(name)
  local text, task = read(name), tasks[name] and '<p>' .. link(root .. tasks[name]:match('%S+'), '←' .. tasks[name]:match(' .*')) .. '</p>\n'
  local code = text:gsub('[&<>"]', {['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;'})
    :gsub('[%w_/]+%.%a+', function(file) return sources[file] and link(href(file), file) end)
  add_to_index(address(name), name, '', text:match('^// Chapter %d+%. ([^\n]*)') or '')
  leave(('<h1>%s</h1>\n%s<pre id="line" class="line-numbers linkable-line-numbers"><code class="lang-%s">%s</code></pre>')
    :format(name:match('[^/]+$'), task or '', sources[name] or 'text', code), '')
end
-- A row "| word | 中文 | what it is | 2 |", in English and then in Chinese, gets an address and a link to its chapter.
local function read_entry(word, chinese, sentence, where)
  if not where:match('^%d+$') and not where:match('^%[') then return end  -- of the other table
  local id = word:lower():gsub('[ ,()]+', '-'):gsub('%-$', '')
  local known, tip = tips[id], word .. ', ' .. chinese .. ': ' .. sentence:gsub('"', '&quot;')
  tips[id] = {en = known and known.en or tip, zh = tip}
  for one in (known and '' or word:gsub(' %(.*', '') .. '、' .. chinese .. '、'):lower():gsub(', ', '、'):gmatch('(.-)、') do
    terms[one] = terms[one] or {}
    table.insert(terms[one], 1, {id = id, chapter = where, only_there = word:match('%(') or everyday:find(' ' .. one .. ' ', 1, true)})
  end
  add_to_index(address(path) .. '#' .. id, title(path), word .. ', ' .. chinese, sentence)
  where = where:gsub('^%d+$', '[%0](ch%0/README' .. (known and '.zh' or '') .. '.md#word-' .. id .. ')')
  return ('\n| <span id="%s">%s</span> | %s | %s | %s |'):format(id, word, chinese, sentence, where)
end
for name in io.popen('find *.md .ci apps autograd core nn optim tests -type f ! -path "*/mine/*" | sort -V'):lines() do
  local last, of, number = name:match('[^/]+$'), name:gsub('/exercises/', '/'):match('book/c?h?(%w+)/(%d+)[%w_]*%.cpp$')
  if number then starters[of:gsub('^bugs$', 'bug') .. '.' .. number] = name end
  sources[name] = language_of[last:match('%.(%w+)$')] or last:match('^[%l_]+$') and 'bash' or nil
  local part = name:gsub('[^/]*$', '') .. (last:match('%.(zh)%.md$') or 'en')
  if name:match('%.md$') then texts[name], parts[part] = read(name), (parts[part] or '') .. read(name) end
  if sources[name] then pages[last] = pages[last] == nil and name end
  if sources[name] or texts[name] then pages[name], pages[name:gsub('/README%.md$', '')] = name, name end
  local other = name:gsub('%.zh%.md$', '.md')
  if other ~= name then twins[name], twins[other] = other, name
  elseif texts[name] then (name:match('book/[Rc]') and book or name:match('book/') and rest or folders):insert(name) end
end
read('apps/book/figures/labels.zh.txt'):gsub('#[^\n]*\n', '')
  :gsub('([^\n]+)\n([^\n]+)\n', function(english, chinese) labels[english] = chinese end)
book:extend(rest)
for _, name in ipairs{glossary, twins[glossary]} do path = name; texts[name] = texts[name]:gsub('\n' .. ('| ([^|\n]+) '):rep(4) .. '|', read_entry) end
for _, name in ipairs(book .. folders) do for _, text in ipairs{name, twins[name]} do enter(text) make_text(text) end end
for _, name in ipairs(wanted) do enter(name) make_source(name) end  -- which may want more
write('index.js', 'const siteIndex = [\n' .. index .. '];\n')
