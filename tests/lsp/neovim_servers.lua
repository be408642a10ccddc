-- Opens files with the settings of the page about editors, waits for the findings of each, and counts the servers.
vim.cmd("filetype on")
dofile(vim.env.QUIRE_TEST_SETTINGS)
for _, file in ipairs(vim.split(vim.env.QUIRE_TEST_FILES, ":")) do
  vim.cmd("edit " .. file)
  if not vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 20) then
    print("timeout: findings of " .. file)
    vim.cmd("cquit")
  end
  print("servers " .. #vim.lsp.get_active_clients() .. "\n")
end
vim.cmd("qall!")
