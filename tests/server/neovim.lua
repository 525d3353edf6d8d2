-- Neovim without a screen as the editor, to be run by hand where it is installed (0.7 or later):
--   nvim --headless --clean -S tests/server/neovim.lua
-- `gradfix` is the one on the path, or $GRADFIX. Prints what a user sees; leaves with 1 where that isn't so.

local broken = {
  "import torch",
  "",
  "x = torch.ones(3, requires_grad=True)",
  "y = x.exp()",
  "s = '😀'; y += 1",
  "y.sum().backward()",
}
local mended = vim.deepcopy(broken)
mended[5] = "s = '😀'; y = y + 1"

local function say(...)
  io.stdout:write(table.concat({ ... }, " ") .. "\n")
end

local function must(holds, what)
  if not holds then
    say("not so:", what)
    vim.cmd("cquit 1")
  end
  say("ok:", what)
end

local function shown(count, what)
  must(vim.wait(30000, function() return #vim.diagnostic.get(0) == count end, 20), what)
end

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

local function actions(only)
  local params = vim.lsp.util.make_range_params()
  params.context = { diagnostics = vim.lsp.diagnostic.get_line_diagnostics(0), only = only }
  local found = {}
  for _, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 30000) or {}) do
    for _, action in ipairs(answer.result or {}) do
      table.insert(found, action)
    end
  end
  return found
end

local folder = vim.fn.tempname()
vim.fn.mkdir(folder, "p")
vim.cmd("edit " .. folder .. "/train.py")
vim.api.nvim_buf_set_lines(0, 0, -1, false, broken)
local client = vim.lsp.start_client({
  name = "gradfix",
  cmd = { os.getenv("GRADFIX") or "gradfix", "server" },
  root_dir = folder,
})
vim.lsp.buf_attach_client(0, client)

shown(1, "a finding is shown")
local found = vim.diagnostic.get(0)[1]
say("")
for number, line in ipairs(lines()) do
  say(string.format("%4d  %s", number, line))
  if number - 1 == found.lnum then
    local before = vim.fn.strdisplaywidth(line:sub(1, found.col))
    say(string.rep(" ", 6 + before) .. string.rep("~", found.end_col - found.col), found.source, found.message)
  end
end
say("")
must(found.lnum == 4 and broken[5]:sub(found.col + 1, found.end_col) == "y += 1", "it stands under the write")

vim.api.nvim_win_set_cursor(0, { 5, #"s = '😀'; " })
for _, action in ipairs(actions()) do
  say("   ", action.isPreferred and "*" or " ", action.title)
end

vim.api.nvim_buf_set_lines(0, 0, 0, false, { "# above", "" })
vim.api.nvim_buf_set_lines(0, -1, -1, false, { "z = (" })
vim.wait(1000)
must(#vim.diagnostic.get(0) == 1 and vim.diagnostic.get(0)[1].lnum == 6, "it stays while the text is half typed")
vim.api.nvim_buf_set_lines(0, -2, -1, false, {})
vim.api.nvim_buf_set_lines(0, 0, 2, false, {})
vim.wait(1000)
must(vim.deep_equal(lines(), broken) and #vim.diagnostic.get(0) == 1, "it stays when that is taken back")

vim.api.nvim_win_set_cursor(0, { 5, #"s = '😀'; " })
local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", vim.lsp.util.make_position_params(), 30000)
local told = hover[client].result.contents.value
must(told:find("overwrites what backward still needs", 1, true), "hovering explains the rule")

local fix = actions({ "quickfix" })[1]
vim.lsp.util.apply_workspace_edit(fix.edit, "utf-16")
must(vim.deep_equal(lines(), mended), "the quick fix mends it")
shown(0, "what is mended is no longer shown")

vim.api.nvim_buf_set_lines(0, 0, -1, false, broken)
shown(1, "it is shown again where it is typed again")
vim.lsp.util.apply_workspace_edit(actions({ "source.fixAll" })[1].edit, "utf-16")
must(vim.deep_equal(lines(), mended), "fix all mends it")

vim.api.nvim_buf_set_lines(0, 0, -1, false, broken)
shown(1, "and again")
for _, action in ipairs(actions({ "quickfix" })) do
  if action.title:find("Suppress") then
    vim.lsp.util.apply_workspace_edit(action.edit, "utf-16")
  end
end
must(lines()[5] == broken[5] .. "  # gradfix: ignore[GF101]", "a comment suppresses it")
shown(0, "what is suppressed is no longer shown")

vim.cmd("file " .. folder .. "/renamed.py")
vim.cmd("write")
vim.lsp.stop_client(client)
must(vim.wait(10000, function() return vim.lsp.get_client_by_id(client) == nil end, 20), "the server leaves when it is told to")
vim.cmd("qall!")
