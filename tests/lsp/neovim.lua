-- Opens a document with the language server attached, waits for findings, asks for a hover, edits, and prints what it saw.
local file, command = vim.env.QUIRE_TEST_FILE, vim.env.QUIRE_TEST_COMMAND
local function waited(what, done)
  if not vim.wait(40000, done, 20) then
    print("timeout: " .. what)
    vim.cmd("cquit")
  end
end

vim.cmd("edit " .. file)
local client = vim.lsp.start_client({ name = "quire", cmd = { command, "lsp" }, root_dir = vim.fn.fnamemodify(file, ":h") })
vim.lsp.buf_attach_client(0, client)
waited("findings", function() return #vim.diagnostic.get(0) > 0 end)
local first = vim.diagnostic.get(0)[1]
print("finding " .. first.code .. " line " .. first.lnum)

local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", {
  textDocument = vim.lsp.util.make_text_document_params(0),
  position = { line = first.lnum, character = first.col + 3 },
}, 20000)
for _, answer in pairs(answers or {}) do
  print("hover " .. (answer.result and "something" or "nothing"))
end

vim.api.nvim_buf_set_lines(0, first.lnum, first.lnum + 1, false, { "Say something." })
waited("no findings", function() return #vim.diagnostic.get(0) == 0 end)
print("mended")
vim.cmd("qall!")
